"use strict";
// The panels around the diagram: settings, acknowledgement windows, events,
// figures, and the table of datagrams.

let about = null; // what can be set, from the library
let types = [];   // the names of datagrams' types

// ---- Settings

const inputs = { values: {}, versus: {} }; // the elements of each field

// Values of wide range have sliders that are finer at the low end.
const curve = info => info.Max - info.Min >= 500 * info.Scale ? 3 : 1.7;
const toSlider = (info, v) => Math.round(1000 * ((v - info.Min) / (info.Max - info.Min)) ** (1 / curve(info)));
function fromSlider(info, s) {
	const v = info.Min + (info.Max - info.Min) * (s / 1000) ** curve(info), shown = v / info.Scale;
	const step = shown >= 1000 ? 50 : shown >= 100 ? 5 : shown >= 10 || info.Scale === 1 ? 1 : 0.1;
	return Math.max(info.Min, Math.min(info.Max, Math.round(Math.round(shown / step) * step * info.Scale)));
}

function buildSettings() {
	const body = $("settings-body"), help = el("p", { class: "help", id: "help" });
	const presets = el("div", { class: "presets", role: "group", "aria-label": "Links" }, ...about.presets.map(p =>
		el("button", { type: "button", "data-preset": p.Key, "aria-pressed": "false", title: p.About, onclick: () => usePreset(p) }, p.Label)));
	const group = (legend, name, ...first) => el("fieldset", {}, el("legend", {}, legend), ...first, ...about.fields.filter(f => f.Group === name).map(buildField));
	const seed = el("input", { type: "text", id: "seed", inputmode: "numeric", pattern: "[0-9]{1,20}", onchange: e => e.target.validity.valid && e.target.value && settle("seed=" + e.target.value) });
	body.append(
		group("The link, in both directions", "link", presets),
		group("What the peers send", "load"),
		buildOptions(),
		el("fieldset", {}, el("legend", {}, "Chance"), el("div", { class: "field" }, el("label", { for: "seed" }, "Seed"), seed),
			el("button", { type: "button", id: "reseed", onclick: () => settle("seed=" + (BigInt(state.parsed.Seed) + 1n & 0xFFFFFFFFFFFFFFFFn)) }, "The next seed")),
		help);
	body.addEventListener("focusin", e => { help.textContent = e.target.dataset.help || ""; });
	body.addEventListener("pointerover", e => { if (e.target.closest("[data-help]")) help.textContent = e.target.closest("[data-help]").dataset.help; });
	$("settings-fold").onclick = () => {
		const open = $("settings-fold").getAttribute("aria-expanded") === "false";
		$("settings-fold").setAttribute("aria-expanded", open);
		body.hidden = !open;
	};
	if (matchMedia("(max-width: 800px)").matches) $("settings-fold").click();
}

function buildField(info) {
	const id = "f-" + info.Key, number = el("input", {
		type: "number", id, min: info.Min / info.Scale, max: info.Max / info.Scale, step: 1 / info.Scale, "data-help": info.Help,
		onchange: e => { if (e.target.value !== "" && e.target.validity.valid) change(info, Math.round(e.target.value * info.Scale)); },
	});
	const range = el("input", {
		type: "range", min: 0, max: 1000, "aria-label": info.Label, "data-help": info.Help,
		oninput: e => { number.value = fromSlider(info, +e.target.value) / info.Scale; range.setAttribute("aria-valuetext", number.value + " " + info.Unit); },
		onchange: e => change(info, fromSlider(info, +e.target.value)),
	});
	const box = el("div", { class: "field" }, el("label", { for: id, "data-help": info.Help }, info.Label, " ", el("small", {}, info.Unit)), range, number);
	inputs.values[info.Key] = { info, show(v) {
		if (document.activeElement !== number) number.value = v / info.Scale;
		if (document.activeElement !== range || !range.matches(":active")) range.value = toSlider(info, v);
		range.setAttribute("aria-valuetext", v / info.Scale + " " + info.Unit);
	}, box };
	return box;
}

function buildOptions() {
	const head = el("tr", {}, el("td", {}), el("th", { scope: "col" }, "Run 1"), el("th", { scope: "col", class: "second" }, "Run 2"));
	const rows = about.fields.filter(f => f.Group === "options").map(info => el("tr", {},
		el("th", { scope: "row", "data-help": info.Help }, info.Label, info.Unit ? el("small", { style: "display:inline" }, " " + info.Unit) : null),
		el("td", {}, buildOption(info, "values", "run 1")), el("td", { class: "second" }, buildOption(info, "versus", "run 2"))));
	const compare = el("input", { type: "checkbox", class: "switch", role: "switch", id: "compare", "data-help": "A second run over the same seed, with options of its own.", onchange: e => settle(e.target.checked ? "vs=none" : "vs=off") });
	return el("fieldset", {}, el("legend", {}, "Options of the sessions"),
		el("table", { class: "options" }, el("thead", { id: "options-head" }, head), el("tbody", {}, ...rows)),
		el("div", { class: "compare-row" }, el("label", { for: "compare" }, "Compare with a second run"), compare));
}

function buildOption(info, which, name) {
	const changed = () => which === "values" ? settle(info.Key + "=" + value()) : settle("vs=" + versusText());
	const input = info.Switch
		? el("input", { type: "checkbox", class: "switch", role: "switch", "data-help": info.Help, "aria-label": `${info.Label}, ${name}`, onchange: changed })
		: el("input", { type: "number", min: info.Min, max: info.Max, "data-help": info.Help, "aria-label": `${info.Label}, ${name}`, onchange: e => e.target.validity.valid && e.target.value !== "" && changed() });
	const value = () => info.Switch ? +input.checked : +input.value;
	inputs[which][info.Key] = { info, value, show(v) { if (info.Switch) input.checked = v !== 0; else if (document.activeElement !== input) input.value = v; } };
	return input;
}

// versusText writes the options of the second run as an address has them.
function versusText() {
	const on = Object.entries(inputs.versus).filter(([, i]) => i.value()).map(([key, i]) => i.info.Switch ? key : key + "-" + i.value());
	return on.join(",") || "none";
}

// showSettings writes the values into the controls.
function showSettings() {
	const p = state.parsed, values = state.status[0] ? state.status[0].Values : p.Values;
	for (const [key, input] of Object.entries(inputs.values)) input.show(values[key]);
	for (const [key, input] of Object.entries(inputs.versus)) input.show(p.Versus[key]);
	const off = { every: !values.burst, by: !values.reorder, outages: !values.outage, queue: !values.rate };
	for (const [key, is] of Object.entries(off)) inputs.values[key].box.classList.toggle("off", is);
	$("compare").checked = p.Compare;
	for (const cell of document.querySelectorAll(".options .second")) cell.hidden = !p.Compare;
	$("options-head").hidden = !p.Compare;
	if (document.activeElement !== $("seed")) $("seed").value = p.Seed;
	const link = presetOf(values);
	for (const b of document.querySelectorAll("[data-preset]")) b.setAttribute("aria-pressed", b.dataset.preset === link);
	const s = state.status[0], done = s ? s.Actions - s.Coming : 0;
	$("script").replaceChildren(...(s && s.Actions ? [
		`${done} of ${s.Actions} ${s.Actions === 1 ? "change" : "changes"} on the way · `,
		el("button", { type: "button", class: "link", onclick: fromHere, title: "Forget the changes, and start with the settings as they are now" }, "start with these settings")] : []));
}

let presetValues = null; // what each preset makes of the link, by asking the library

function presetOf(values) {
	if (!presetValues) presetValues = about.presets.map(p => [p.Key, json(ackbits.parse("link=" + p.Key)).Values]);
	const keys = about.fields.filter(f => f.Group === "link").map(f => f.Key);
	const found = presetValues.find(([, v]) => keys.every(k => v[k] === values[k]));
	return found ? found[0] : "";
}

// ---- Acknowledgement windows

const windows = [];

function buildWindows() {
	for (const side of [0, 1]) {
		const w = { side, head: el("span"), grid: el("div", { class: "cells", role: "group" }), cells: [], shown: "" };
		const title = el("b", {}, side ? "The server has received" : "The client has received");
		$("windows").append(el("div", { class: "window", style: `--side: var(--${side ? "input" : "snapshot"})` }, el("div", { class: "cells-head" }, title, w.head), w.grid));
		w.grid.addEventListener("click", e => {
			const cell = e.target.closest(".cell");
			if (cell) selectSequence(1 - side, +cell.dataset.seq);
		});
		w.grid.addEventListener("keydown", e => {
			const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 11, ArrowUp: -11 }[e.key], at = w.cells.indexOf(document.activeElement);
			if (!by || at < 0) return;
			e.preventDefault();
			for (let i = at + by; i >= 0 && i < w.cells.length; i += Math.sign(by)) {
				if (w.cells[i].dataset.is !== "-") { w.cells[i].focus(); break; }
			}
		});
		windows.push(w);
	}
}

// showWindows updates what changed. A sequence keeps its place as long as it is
// in the window, so that a gap can be seen to fill.
function showWindows() {
	const status = state.status[state.run];
	for (const w of windows) {
		const p = status.Peers[w.side], key = state.version + ":" + state.run + ":" + p.Ack + p.Cells;
		if (key === w.shown) continue;
		const again = w.shown.startsWith(state.version + ":" + state.run + ":");
		w.shown = key;
		const n = p.Cells.length;
		if (w.cells.length !== n) {
			w.cells = Array.from({ length: n }, () => el("button", { type: "button", class: "cell", tabindex: "-1" }));
			w.grid.replaceChildren(...w.cells);
			w.grid.classList.toggle("wide", n > 33);
		}
		const missing = [];
		for (let i = 0; i < n; i++) {
			const seq = p.Ack - i & 65535, is = p.Cells[i], cell = w.cells[((p.Ack - i) % n + n) % n], filled = again && is === "1" && +cell.dataset.seq === seq && "xo".includes(cell.dataset.is);
			if (is === "x" || is === "o") missing.push(seq);
			if (+cell.dataset.seq !== seq || cell.dataset.is !== is || i < 2) {
				cell.className = "cell" + (i === 0 ? " ack" : "") + (filled ? " filled" : "");
				cell.dataset.is = is;
				cell.dataset.seq = seq;
				cell.textContent = is === "-" ? "" : seq;
				cell.title = is === "-" ? "" : (i ? `bit ${i - 1}` : "ack") + `: ${seq} ${{ 1: "was received", x: "is missing: it was lost", o: "is missing: it is still in flight" }[is]}`;
				cell.setAttribute("aria-label", cell.title);
			}
			cell.tabIndex = i === 0 ? 0 : -1;
		}
		w.head.textContent = p.Heard ? `ack ${p.Ack}, ${missing.length ? missing.length + " missing" : "none missing"}` : "nothing received yet";
		w.grid.setAttribute("aria-label", `${w.side ? "Server" : "Client"}: ${w.head.textContent}${missing.length ? ": " + missing.join(", ") : ""}`);
	}
}

// ---- Events

const eventRows = [];

function buildEvents() {
	const list = el("div", { class: "event-list" });
	$("events").append(el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}), el("div", { id: "events-axis" }), el("span", {})), list);
	for (let i = 0; i < 12; i++) {
		const row = { from: el("span"), svg: document.createElementNS("http://www.w3.org/2000/svg", "svg"), took: el("span", { class: "took" }), copies: el("span", { class: "hidden" }) };
		row.svg.setAttribute("aria-hidden", "true");
		row.button = el("button", { type: "button", class: "event-row", hidden: true, onclick: () => row.event && select({ run: state.run, kind: "event", side: row.event.From, number: row.event.Number }) }, row.from, row.copies, row.svg, row.took);
		list.append(row.button);
		eventRows.push(row);
	}
}

function showEvents() {
	const status = state.status[state.run], events = status.Events.slice(0, eventRows.length);
	const longest = Math.max(40, ...events.map(e => (e.Delivered >= 0 ? Math.max(e.Delivered, Math.min(e.Acked, e.Delivered + 150)) : Math.min(state.now, e.Sent + 2000)) - e.Sent));
	const step = niceStep(longest, 4), top = Math.ceil(longest / step) * step, X = t => Math.min(100, t / top * 100).toFixed(2) + "%";
	$("events-axis").replaceChildren(...Array.from({ length: Math.round(top / step) + 1 }, (_, i) => el("span", {}, i ? i * step + (i * step === top ? " ms" : "") : "0")));
	eventRows.forEach((row, i) => {
		const e = row.event = events[i];
		row.button.hidden = !e;
		if (!e) return;
		row.from.textContent = `#${e.Number} ${PEERS[e.From]}`;
		row.took.textContent = e.Delivered >= 0 ? (e.Delivered - e.Sent).toFixed(1) + " ms" : "waits";
		row.took.style.color = e.Delivered >= 0 ? "" : "var(--late)";
		const selected = state.selected && state.selected.kind === "event" && state.selected.side === e.From && state.selected.number === e.Number;
		row.button.setAttribute("aria-current", selected ? "true" : "false");
		row.copies.textContent = `, ${e.Copies.length} ${e.Copies.length === 1 ? "copy" : "copies"}, ${e.Delivered >= 0 ? "delivered after" : "not there yet"} `;
		let svg = `<line x1="0" x2="100%" y1="10" y2="10" stroke="var(--line)"/>`;
		for (const c of e.Copies) {
			const from = X(c.Sent - e.Sent), lost = c.Arrives < 0, to = X((lost ? c.Sent + (state.status[state.run].Values.rtt / 4) : Math.min(c.Arrives, state.now)) - e.Sent);
			svg += `<line x1="${from}" x2="${to}" y1="10" y2="10" stroke="var(--${lost ? "lost" : "event"})" stroke-width="2" ${lost ? 'stroke-dasharray="2 2"' : ""} opacity=".75"/><circle cx="${from}" cy="10" r="3" fill="var(--event)"/>`;
			if (lost) svg += `<text x="${to}" y="14.500" text-anchor="middle" font-size="13" font-weight="700" fill="var(--lost)">×</text>`;
		}
		if (e.Delivered > e.First || e.Delivered < 0 && e.First >= 0) svg += `<circle cx="${X(e.First - e.Sent)}" cy="10" r="3.500" fill="var(--panel)" stroke="var(--good)" stroke-width="1.500"/>`; // it waits for those before it
		if (e.Acked >= 0) svg += `<line x1="${X(e.Acked - e.Sent)}" x2="${X(e.Acked - e.Sent)}" y1="4" y2="16" stroke="var(--muted)" stroke-width="1.500"/>`;
		if (e.Delivered >= 0) svg += `<svg x="${X(e.Delivered - e.Sent)}" overflow="visible"><path d="M0 4l6 6-6 6-6-6z" fill="var(--good)"/></svg>`;
		row.svg.innerHTML = svg;
	});
}

// ---- Figures

function showFigures() {
	const strong = new Set(["p50", "p99", "copies"]);
	const rows = state.status[0].Figures.map((f, i) => el("tr", { class: strong.has(f.Key) ? "strong" : "" }, el("th", { scope: "row" }, f.Label),
		...state.status.slice(0, state.runs).map(s => el("td", { class: f.Key === "digest" ? "digest" : "" }, s.Figures[i].Value))));
	const head = state.runs > 1 ? [el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "Run 1"), el("th", { scope: "col" }, "Run 2")))] : [];
	$("figures").replaceChildren(...head, el("tbody", {}, ...rows));
	$("check").textContent = checkCommand();
}

// checkCommand is what to type for the same figures.
function checkCommand() {
	const micro = Math.round(state.now * 1000);
	return `go run ./examples/playground -check -for ${micro}us '${state.address}'`;
}

// ---- The table of datagrams

function showTable() {
	if (!$("listing").open) return;
	const diagram = diagrams[state.run], rows = diagram.flights.slice(0, 40).map(f => el("tr", {},
		el("td", {}, el("button", { type: "button", class: "link", onclick: () => select({ run: state.run, kind: "flight", id: f.id }) }, `${typeName(f)} ${f.sequence}`)),
		el("td", {}, PEERS[f.from]), el("td", {}, seconds(f.sent)), el("td", {}, f.lost ? LOSSES[f.outcome] : ARRIVALS[f.got[0]]), el("td", {}, f.lost ? "" : seconds(f.arrives)), el("td", {}, f.bytes + " bytes"), el("td", {}, f.sealed ? "sealed" : "")));
	$("table").replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...["Datagram", "From", "Sent", "Outcome", "Arrives", "Size", ""].map(h => el(h ? "th" : "td", h ? { scope: "col" } : {}, h)))), el("tbody", {}, ...rows)));
}

// ---- The legend

function buildLegend() {
	const line = (color, extra = "") => `<line x1="0" y1="6" x2="26" y2="6" stroke="var(--${color})" stroke-width="2.500" ${extra}/>`;
	const items = [
		["Input", line("input")], ["Snapshot", line("snapshot")], ["Events alone", line("event")], ["Heartbeat", line("heartbeat")],
		["Carries events", line("input") + `<circle cx="9" cy="6" r="3.500" fill="var(--event)"/>`],
		["Lost", line("input").replace('x2="26"', 'x2="15"') + `<path d="M12 2l7 8M19 2l-7 8" stroke="var(--lost)" stroke-width="2"/>`],
		["Second copy", line("input", 'stroke-dasharray="4 3"')],
		["Late", line("input") + `<circle cx="22" cy="6" r="4" fill="var(--panel)" stroke="var(--late)" stroke-width="2"/>`],
		["Sealed", line("input") + `<path d="M10.500 5.500v-2a2.500 2.500 0 0 1 5 0v2" fill="none" stroke="var(--ink)" stroke-width="1.400"/><path d="M9 5.500h8v6h-8z" fill="var(--ink)"/>`],
		["Event sent", `<path d="M13 1l5 5-5 5-5-5z" fill="var(--panel)" stroke="var(--event)" stroke-width="1.500"/>`],
		["Event delivered", `<path d="M13 1l5 5-5 5-5-5z" fill="var(--good)"/>`],
	];
	for (const [text, svg] of items) {
		const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
		icon.setAttribute("aria-hidden", "true");
		icon.innerHTML = svg;
		$("legend").append(el("li", {}, icon, text));
	}
}

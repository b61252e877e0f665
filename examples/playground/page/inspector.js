"use strict";
// The inspector: a datagram's bytes by field, or an event's life.

const TINTS = { format: 0, type: 6, token: 2, sequence: 1, ack: 3, ack_bits: 7, "inner type": 6, count: 6, "event id": 4, length: 2, event: 4, payload: 0 };
const tint = part => `var(--f${TINTS[part.Name] ?? 6})`;

// select chooses what the inspector shows: see state.selected.
function select(what) {
	state.selected = what;
	state.detail = null;
	state.lit = new Set();
	shownDetail = "";
	refreshDetail();
	if (!what) return;
	const d = state.detail;
	if (what.kind === "flight" && d) say(`${d.Type} ${d.Sequence} of the ${PEERS[d.From]}, sent at ${seconds(d.Sent)}, ${d.Outcome}. It acknowledges ${d.Acknowledged.length} datagrams.`);
	if (what.kind === "event" && d) say(`Event ${d.Number} of the ${PEERS[d.From]}: ${d.Life.map(m => m.Text).join(" ")}`);
}

function selectSequence(side, seq) {
	const id = ackbits.find(state.run, side, seq);
	if (id >= 0) {
		select({ run: state.run, kind: "flight", id });
		diagrams[state.run].reveal();
	}
}

let shownDetail = "";

// refreshDetail asks again about what is selected, which may have gone on, and
// shows it if it did.
function refreshDetail() {
	const s = state.selected;
	const text = !s ? "" : s.kind === "flight" ? ackbits.flight(s.run, s.id) : ackbits.event(s.run, s.side, s.number);
	if (text === shownDetail && text !== "") return;
	if (!s && shownDetail === "nothing") return;
	shownDetail = text || "nothing";
	const d = state.detail = text ? json(text) : null, inspector = $("inspector");
	state.lit = new Set(!d ? [] : s.kind === "flight" ? d.Acknowledged : d.Copies.map(c => c.Flight));
	const focused = document.activeElement && inspector.contains(document.activeElement) ? document.activeElement.dataset.key : null;
	inspector.replaceChildren(...(!d ? nothing(s) : s.kind === "flight" ? flightView(d) : eventView(d)));
	if (focused) inspector.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

const heading = (text, small) => el("h2", { class: "panel-title" }, text, small ? el("small", {}, small) : null);
const facts = pairs => el("dl", { class: "facts" }, ...pairs.filter(p => p).flatMap(([name, ...value]) => [el("dt", {}, name), el("dd", {}, ...value)]));
const flightLink = (id, text) => el("button", { type: "button", class: "link", "data-key": "f" + id + text, onclick: () => { select({ run: state.run, kind: "flight", id }); diagrams[state.run].reveal(); } }, text);
const eventLink = (side, number) => el("button", { type: "button", class: "link", "data-key": "e" + side + number, onclick: () => select({ run: state.run, kind: "event", side, number }) }, "#" + number);

function nothing(selected) {
	if (selected) return [heading("Forgotten"), el("p", { class: "lead" }, "That was too long ago: only the newest 16,384 datagrams and 8,192 events of each side are remembered.")];
	return [heading("Nothing selected"), el("p", { class: "lead" }, "Click a datagram in the diagram to read its bytes field by field: the datagrams that it acknowledges light up. Click an event to see its life.")];
}

function flightView(d) {
	const to = PEERS[1 - d.From], arrivals = d.Arrives.map((t, i) => t <= state.now ? `${seconds(t)} ${d.Got[i] === "newest" ? "" : "(" + d.Got[i] + ")"}` : "still in flight");
	return [
		el("div", { class: "with-walk" }, heading(`${d.Type} ${d.Sequence}`, `${PEERS[d.From]} → ${to}${d.Sealed ? ", sealed" : ""}`), el("span", {}, walkButton(-1), walkButton(1))),
		facts([
			["sent", seconds(d.Sent)],
			d.Arrives.length ? ["arrived", arrivals.join(" and ")] : ["outcome", el("b", { style: "color: var(--lost)" }, d.Outcome)],
			["known to the sender", d.Acked >= 0 ? `${seconds(d.Acked)}, ${ms(d.Acked - d.Sent)} after` : d.Arrives.length ? "not yet" : "not as delivered"],
			["size", `${d.Size} bytes`],
			d.Events.length ? ["events", ...d.Events.slice(0, 24).flatMap(n => [eventLink(d.From, n), " "]), d.Events.length > 24 ? `and ${d.Events.length - 24} more` : ""] : null,
		]),
		...(d.Sealed ? sealedBytes(d) : plainBytes(d)),
		...namesView(d),
	];
}

// walkButton goes on to the datagram sent next, or before.
function walkButton(by) {
	return el("button", { type: "button", class: "quiet", "data-key": "walk" + by, "aria-label": by < 0 ? "The datagram sent before" : "The datagram sent next", onclick: () => diagrams[state.run].walk(by) }, by < 0 ? "‹" : "›");
}

const bytesOf = hex => hex.match(/../g) || [];

// hexView shows bytes tinted by field. Those of no part are secret.
function hexView(bytes, parts, offset, label) {
	const shown = bytes.slice(0, 320), box = el("div", { class: "hex", role: "img", "aria-label": label });
	shown.forEach((byte, i) => {
		const part = parts.findIndex(p => i + offset >= p.From && i + offset < p.To);
		box.append(el("span", part < 0 ? { class: "secret" } : { style: "--c:" + tint(parts[part]), "data-part": part }, byte));
	});
	if (bytes.length > shown.length) box.append(el("em", { style: "grid-column: 1 / -1" }, `and ${bytes.length - shown.length} more`));
	return box;
}

function partsView(parts, caption) {
	const rows = parts.slice(0, 60).map((p, i) => el("tr", { "data-part": i }, el("th", { scope: "row" }, el("i", { style: "--c:" + tint(p) }), p.Name),
		el("td", {}, el("span", { class: "mono" }, p.Value.length > 90 ? p.Value.slice(0, 90) + "…" : p.Value), p.Note ? el("small", {}, p.Note) : null)));
	return el("table", { class: "parts" }, el("caption", { class: "hidden" }, caption), el("tbody", {}, ...rows));
}

// linked lights up the bytes of a field when it is pointed at, and the other way round.
function linked(...nodes) {
	const box = el("div", {}, ...nodes), light = part => box.querySelectorAll("[data-part]").forEach(n => n.classList.toggle("lit", part !== undefined && n.dataset.part === part));
	box.addEventListener("pointerover", e => light(e.target.closest("[data-part]")?.dataset.part));
	box.addEventListener("pointerleave", () => light());
	return box;
}

function plainBytes(d) {
	const at = d.Header.at(-1).To, parts = d.Header.concat(d.Payload.map(p => ({ ...p, From: p.From + at, To: p.To + at })));
	return [el("h3", {}, "Bytes, by field"), linked(hexView(bytesOf(d.Hex), parts, 0, `${d.Size} bytes; the fields follow`), partsView(parts, "Fields of the datagram"))];
}

function sealedBytes(d) {
	const plain = bytesOf(d.Plain);
	return [
		el("h3", {}, "What everybody on the way sees"),
		linked(hexView(bytesOf(d.Hex), d.Header, 0, `${d.Size} bytes: a header in the clear, ${plain.length} bytes encrypted, and a tag`), partsView(d.Header, "Fields of the header")),
		el("p", { class: "lead" }, `The hatched bytes are the payload encrypted, ${plain.length} bytes, and a tag of ${d.Size - d.Header.at(-1).To - plain.length}. A bit changed anywhere, in the header too, and the receiver drops it.`),
		el("h3", {}, "What the two peers read"),
		plain.length ? linked(hexView(plain, d.Payload, 0, `${plain.length} bytes of payload; the fields follow`), partsView(d.Payload, "Fields of the payload")) : el("p", { class: "lead" }, "No payload."),
	];
}

// namesView shows what the acknowledgements mean, the newest first.
function namesView(d) {
	if (!d.Acknowledged.length) return [el("h3", {}, "Acknowledges"), el("p", { class: "lead" }, "Nothing yet.")];
	const ack = +d.Header.find(p => p.Name === "ack").Value, back = seq => ack - seq & 65535;
	const all = d.Acknowledged.map(id => ({ id, seq: sequenceOf(id) })).concat(d.Missing.map(seq => ({ seq }))).sort((a, b) => back(a.seq) - back(b.seq));
	const box = el("div", { class: "acknowledged", style: `--side: var(--${d.From ? "input" : "snapshot"})` }, ...all.map(n => n.id === undefined
		? el("span", { title: `bit ${back(n.seq) - 1} is 0` }, n.seq)
		: el("button", { type: "button", "data-key": "n" + n.id, title: back(n.seq) ? `bit ${back(n.seq) - 1} is 1` : "ack", onclick: () => { select({ run: state.run, kind: "flight", id: n.id }); diagrams[state.run].reveal(); } }, n.seq)));
	return [el("h3", {}, `Acknowledges ${d.Acknowledged.length}${d.Missing.length ? `, leaves out ${d.Missing.length}` : ""} of the ${PEERS[1 - d.From]}'s`), box];
}

function sequenceOf(id) { return json(ackbits.flight(state.run, id)).Sequence; }

function eventView(d) {
	const copies = d.Copies.length;
	return [
		heading(`Event #${d.Number}`, `${PEERS[d.From]} → ${PEERS[1 - d.From]}`),
		facts([
			["id on the wire", String(d.ID)], ["size", d.Size + " bytes"], ["copies", `${copies}, ${copies * (4 + d.Size)} bytes in all`],
			["latency", d.Delivered >= 0 ? el("b", {}, ms(d.Delivered - d.Sent)) : "not there yet"],
		]),
		el("h3", {}, "Its life"),
		el("ol", { class: "life" }, ...d.Life.map(m => el("li", { class: / gets it/.test(m.Text) ? "delivered" : /lost|dropped/.test(m.Text) ? "lost" : "" },
			el("time", {}, "+" + (m.At - d.Sent).toFixed(1) + " ms"), m.Flight >= 0 ? flightLink(m.Flight, m.Text) : el("span", {}, m.Text)))),
	];
}

"use strict";
// Small charts of what has been: lines over the last minute, and how long events
// took. A library for charts would be larger than all scripts of this page.

const MINUTE = 60_000;
const COLUMNS = ["at", "sentC", "sentS", "lostC", "lostS", "bytesC", "bytesS", "events", "delivered", "copies", "p50", "p99", "rttC", "rttS", "minC", "minS", "queueC", "queueS"];

// samples holds the samples of each run: an object for each.
const samples = [[], []];

function readSamples() {
	for (let run = 0; run < state.runs; run++) {
		const have = samples[run];
		for (const row of json(ackbits.samples(run, have.length ? have.at(-1).at : -1))) {
			have.push(Object.fromEntries(COLUMNS.map((name, i) => [name, row[i]])));
		}
		while (have.length && have[0].at < state.now - 2 * MINUTE) have.shift();
	}
}

// Each chart says how to get its lines from two neighbouring samples: null where
// there is nothing to show.
const per = (a, b, key) => (b[key] - a[key]) / ((b.at - a.at) / 1000);
const share = (part, whole) => whole > 0 ? part / whole : null;
const CHARTS = [
	{ title: "Latency of events", unit: "ms", lines: [["p50", "good", (a, b) => b.p50 < 0 ? null : b.p50], ["p99", "lost", (a, b) => b.p99 < 0 ? null : b.p99]] },
	{ title: "How long events took", bars: true, unit: "ms" },
	{ title: "Bytes a second", unit: "B/s", lines: [["client", "input", (a, b) => per(a, b, "bytesC")], ["server", "snapshot", (a, b) => per(a, b, "bytesS")]] },
	{ title: "Copies of each event", unit: "", lines: [["copies", "event", (a, b) => share(b.copies - a.copies, b.events - a.events)]], from: 0 },
	{ title: "Lost", unit: "%", lines: [["client's", "input", (a, b) => share(100 * (b.lostC - a.lostC), b.sentC - a.sentC)], ["server's", "snapshot", (a, b) => share(100 * (b.lostS - a.lostS), b.sentS - a.sentS)]], from: 0 },
	{ title: "Round trip (dotted: the shortest)", unit: "ms", lines: [["client", "input", (a, b) => b.rttC || null], ["server", "snapshot", (a, b) => b.rttS || null], ["client's shortest", "input", (a, b) => b.minC || null, true], ["server's shortest", "snapshot", (a, b) => b.minS || null, true]] },
	{ title: "Queue on the way", unit: "ms", lines: [["client's", "input", (a, b) => b.minC ? b.queueC : null], ["server's", "snapshot", (a, b) => b.minS ? b.queueS : null]] },
];

function buildCharts() {
	for (const chart of CHARTS) {
		chart.value = el("span");
		chart.canvas = el("canvas", { role: "img" });
		$("charts").append(el("figure", { class: "chart" }, el("figcaption", {}, chart.title, chart.value), chart.canvas));
	}
}

function drawCharts() {
	readSamples();
	for (const chart of CHARTS) {
		if (chart.canvas.clientWidth) chart.bars ? drawBars(chart) : drawLines(chart);
	}
}

const amount = n => n >= 10_000 ? (n / 1000).toFixed(0) + " k" : n >= 1000 ? (n / 1000).toFixed(1) + " k" : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(0) : n.toFixed(n % 1 ? 1 : 0);

// series returns the points of a chart's lines: of the second run dashed.
function series(chart) {
	const all = [], end = state.now, start = Math.max(0, end - MINUTE);
	for (let run = 0; run < state.runs; run++) {
		const list = samples[run];
		for (const [name, color, value, dotted] of chart.lines) {
			const points = [];
			for (let i = 1; i < list.length; i++) {
				if (list[i].at < start) continue;
				const y = value(list[i - 1], list[i]);
				points.push([list[i].at, y]);
			}
			all.push({ name, color, points, dotted, second: run === 1 });
		}
	}
	return all;
}

function drawLines(chart) {
	const { g, w, h } = fit(chart.canvas), all = series(chart), end = Math.max(state.now, 5000), start = Math.max(0, end - MINUTE);
	let top = 0;
	for (const s of all) for (const [, y] of s.points) if (y !== null) top = Math.max(top, y);
	top = axis(g, w, h, top || 1, chart.unit);
	const X = t => 34 + (t - start) / (end - start) * (w - 40), Y = y => h - 16 - y / top * (h - 26);
	g.fillStyle = colors.muted; g.textAlign = "left"; g.textBaseline = "alphabetic";
	g.fillText((start / 1000).toFixed(0) + " s", 34, h - 3);
	g.textAlign = "right"; g.fillText((end / 1000).toFixed(0) + " s", w - 2, h - 3);
	for (const s of all) {
		g.strokeStyle = colors[s.color]; g.lineWidth = 1.6; g.lineJoin = "round"; g.globalAlpha = s.second ? 0.75 : 1;
		g.setLineDash(s.dotted ? [1.6, 3] : s.second ? [4, 3] : []);
		g.beginPath();
		let pen = false;
		for (const [t, y] of s.points) {
			if (y === null) continue; // nothing was sent: the line goes on when there is
			pen ? g.lineTo(X(t), Y(y)) : g.moveTo(X(t), Y(y));
			pen = true;
		}
		g.stroke();
	}
	g.setLineDash([]); g.globalAlpha = 1;
	summary(chart, all);
}

// summary writes the newest values beside the title, and for those who do not see
// the chart into its label.
function summary(chart, all) {
	const last = all.map(s => { const p = s.points.filter(([, y]) => y !== null).at(-1); return [s, p ? amount(p[1]) : "–"]; });
	chart.value.replaceChildren(...last.filter(([s]) => !s.dotted).flatMap(([s, value], i) => [
		i ? document.createTextNode(" · ") : "", el("b", { style: `color: var(--${s.color})` }, (state.runs > 1 ? (s.second ? "2: " : "1: ") : "") + s.name), " " + value]), chart.unit ? " " + chart.unit : "");
	chart.canvas.setAttribute("aria-label", `${chart.title}, over the last minute. Now ${last.map(([s, v]) => `${s.name}${s.second ? " of run 2" : ""} ${v}`).join(", ")} ${chart.unit}`);
}

// axis draws the scale and returns its top.
function axis(g, w, h, top, unit) {
	const step = niceStep(top, 3);
	top = Math.ceil(top / step - 1e-9) * step;
	g.font = "11px system-ui, sans-serif"; g.textAlign = "right"; g.textBaseline = "middle"; g.lineWidth = 1;
	for (let y = 0; y <= top + step / 2; y += step) {
		const at = Math.round(h - 16 - y / top * (h - 26)) + 0.5;
		g.strokeStyle = y ? colors.soft : colors.line;
		g.beginPath(); g.moveTo(34, at); g.lineTo(w - 2, at); g.stroke();
		g.fillStyle = colors.muted; g.fillText(amount(y), 29, at);
	}
	return top;
}

const BINS = 30;

function drawBars(chart) {
	const { g, w, h } = fit(chart.canvas);
	const longest = Math.max(...state.status.slice(0, state.runs).map(s => parseFloat(figure(s, "p999")) || 0), 60);
	const width = niceStep(longest * 1.1, BINS), all = [];
	for (let run = 0; run < state.runs; run++) all.push(json(ackbits.latencies(run, width, BINS)));
	const totals = all.map(bins => bins.reduce((a, b) => a + b, 0)), top = axis(g, w, h, Math.max(...all.flatMap((bins, i) => bins.map(n => totals[i] ? 100 * n / totals[i] : 0)), 1), "%");
	const each = (w - 40) / BINS;
	all.forEach((bins, run) => {
		g.fillStyle = colors[run ? "run2" : "event"];
		bins.forEach((n, i) => {
			const high = totals[run] ? 100 * n / totals[run] / top * (h - 26) : 0;
			if (n) g.fillRect(36 + i * each + (run ? each / 2 : 0), h - 16 - Math.max(high, 1), (all.length > 1 ? each / 2 : each) - 1, Math.max(high, 1));
		});
	});
	g.fillStyle = colors.muted; g.textBaseline = "alphabetic"; g.textAlign = "left"; g.fillText("0", 36, h - 3);
	g.textAlign = "right"; g.fillText("≥ " + amount(width * (BINS - 1)) + " ms", w - 2, h - 3);
	const text = all.map((_, run) => (state.runs > 1 ? `${run + 1}: ` : "") + `p50 ${figure(state.status[run], "p50")}, p99 ${figure(state.status[run], "p99")}`).join(" · ");
	chart.value.textContent = state.runs > 1 ? "share, run 1 and 2" : "share, %";
	chart.canvas.setAttribute("aria-label", `How long events took: ${text}`);
}

function figure(status, key) { return status ? status.Figures.find(f => f.Key === key).Value : "–"; }

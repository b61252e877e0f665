"use strict";
// The time–sequence diagram: two lifelines, time to the right (or downwards on a
// narrow screen), and the datagrams between them.

const FLIGHT = 8;           // numbers of a flight, as package view writes them
const MOST = 3000;          // flights drawn at once; more is a grey carpet anyway
const flightBytes = new Uint8Array(MOST * FLIGHT * 8);
const flightNumbers = new Float64Array(flightBytes.buffer);

class Diagram {
	constructor(run) {
		this.run = run;
		this.canvas = el("canvas", { "aria-hidden": "true" });
		this.caption = el("p", { class: "caption" });
		this.box = el("div", { class: "diagram", tabindex: "0", role: "group", "aria-roledescription": "time–sequence diagram", "aria-describedby": "hint" }, this.canvas, this.caption);
		this.flights = [];
		this.marks = []; // of events, for the pointer
		this.pointer = null;
		this.listen();
	}

	listen() {
		const at = e => { const r = this.canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
		let from = null;
		this.box.addEventListener("pointerdown", e => { from = { at: at(e), back: state.back, moved: false }; });
		this.box.addEventListener("pointermove", e => {
			this.pointer = at(e);
			if (from && e.buttons) this.drag(from, this.pointer);
		});
		this.box.addEventListener("pointerleave", () => { this.pointer = null; });
		this.box.addEventListener("pointerup", e => {
			if (from && !from.moved) this.click(at(e));
			from = null;
		});
		this.box.addEventListener("keydown", e => this.key(e));
	}

	// drag moves the view into the past; that stops the game.
	drag(from, to) {
		const axis = this.vertical ? 1 : 0, by = to[axis] - from.at[axis];
		if (Math.abs(by) < 6 && !from.moved) return;
		from.moved = true;
		pause();
		state.back = Math.max(0, Math.min(state.now, from.back + by / this.scale));
	}

	click(at) {
		const mark = this.mark(at), hit = this.hit(at);
		if (mark) {
			pause();
			select({ run: this.run, kind: "event", side: mark.From, number: mark.Number });
			return chooseRun(this.run);
		}
		if (hit) pause(); // to read in peace
		if (hit) select({ run: this.run, kind: "flight", id: hit.id });
		else select(null);
		chooseRun(this.run);
	}

	key(e) {
		const forward = ["ArrowRight", "ArrowDown"].includes(e.key), backward = ["ArrowLeft", "ArrowUp"].includes(e.key);
		if (forward || backward) this.walk(forward ? 1 : -1);
		else if (e.key === " ") togglePlay();
		else if (e.key === "n") step(false);
		else if (e.key === "t") step(true);
		else if (e.key === "+" || e.key === "=") zoom(1);
		else if (e.key === "-") zoom(-1);
		else if (e.key === "Enter" && state.selected) $("inspector").focus();
		else if (e.key === "Escape") select(null);
		else return;
		e.preventDefault();
	}

	// walk selects the datagram sent after the selected one, or before; the newest
	// to begin with.
	walk(by) {
		pause();
		const selected = state.selected, here = selected && selected.run === this.run && selected.kind === "flight";
		const newest = state.status[this.run].Sent - 1;
		const id = here ? selected.id + by : newest;
		if (id < 0 || id > newest) return;
		chooseRun(this.run);
		select({ run: this.run, kind: "flight", id });
		this.reveal();
	}

	// reveal moves the view to the selected datagram.
	reveal() {
		const d = state.detail;
		if (!d || state.selected.kind !== "flight") return;
		const end = state.now - state.back;
		if (d.Sent > end || d.Sent < end - this.shown * 0.9) state.back = Math.max(0, state.now - d.Sent - this.shown * 0.4);
	}

	// shown is how many milliseconds are to be seen: what passes in four seconds, so
	// that datagrams move at the same pace at every speed.
	get shown() { return Math.min(5000, Math.max(60, 4000 * Math.min(1, SPEEDS[state.speed]))) * state.zoom; }

	layout(w, h) {
		this.vertical = w < 560;
		const length = this.vertical ? h : w;
		this.start = this.vertical ? 30 : 14;
		this.end = length - (this.vertical ? 26 : 30);
		this.lines = this.vertical ? [54, w - 22] : [34, h - 40];
		this.scale = (this.end - this.start) / this.shown; // pixels a millisecond
	}

	// place is where a moment is, so far on the way from the client to the server.
	along(t) { return this.end - (state.now - state.back - t) * this.scale; }
	place(t, way) {
		const across = this.lines[0] + (this.lines[1] - this.lines[0]) * way, along = this.along(t);
		return this.vertical ? [across, along] : [along, across];
	}

	fetch() {
		const to = state.now - state.back, count = ackbits.flights(this.run, Math.max(0, to - this.shown), Math.max(0, to), flightBytes);
		this.flights.length = count;
		for (let i = 0; i < count; i++) {
			const n = flightNumbers.subarray(i * FLIGHT, (i + 1) * FLIGHT), bits = n[4];
			const type = bits >>> 1 & 255, inner = bits >>> 9 & 255, copies = bits >>> 21 & 3;
			this.flights[i] = {
				id: n[0], sent: n[1], arrives: n[2], again: n[3], sequence: n[5], bytes: n[6], acked: n[7],
				from: bits & 1, type, inner, looks: TYPES[inner || type] || ["?", "leave"], outcome: bits >>> 17 & 15,
				lost: copies === 0, copies, got: [bits >>> 23 & 7, bits >>> 26 & 7], sealed: (bits >>> 29 & 1) === 1, events: (bits >>> 30 & 1) === 1,
			};
		}
	}

	draw() {
		const { g, w, h } = fit(this.canvas);
		if (!w) return;
		this.layout(w, h);
		this.fetch();
		this.drawFrame(g, w, h);
		const chosen = state.selected && state.selected.run === this.run, dim = chosen && this.bright().size > 0;
		g.lineCap = "round";
		g.save();
		g.beginPath(); // nothing beyond the lifelines' beginning
		this.vertical ? g.rect(0, this.start - 8, w, h) : g.rect(this.start - 8, 0, w, h);
		g.clip();
		for (const bright of dim ? [false, true] : [true]) this.drawFlights(g, dim ? bright : null);
		this.drawEvents(g);
		g.restore();
		this.drawHeads(g, dim);
		this.drawTip(g, w, h);
	}

	// bright are the flights that a selection is about.
	bright() {
		const s = state.selected, ids = new Set(state.lit);
		if (s && s.kind === "flight") ids.add(s.id);
		return ids;
	}

	drawFrame(g, w, h) {
		const step = niceStep(this.shown, (this.end - this.start) / 90), to = state.now - state.back;
		g.font = "11px system-ui, sans-serif";
		g.lineWidth = 1;
		g.textBaseline = "middle";
		for (let t = Math.ceil(Math.max(0, to - this.shown) / step) * step; t <= to; t += step) {
			const [x0, y0] = this.place(t, 0), [x1, y1] = this.place(t, 1);
			g.strokeStyle = colors.soft;
			g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke();
			g.fillStyle = colors.muted;
			const label = step < 1000 ? (t / 1000).toFixed(step < 10 ? 3 : step < 100 ? 2 : 1) + " s" : t / 1000 + " s";
			if (this.vertical) { g.textAlign = "left"; g.fillText(label, 5, y0); }
			else if (x0 > 26) { g.textAlign = "center"; g.fillText(label, x0, h - 14); }
		}
		g.strokeStyle = colors.ink;
		g.lineWidth = 1.5;
		for (const way of [0, 1]) {
			const [x0, y0] = this.place(Math.max(0, to - this.shown), way), [x1, y1] = this.place(to, way);
			g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke();
		}
		g.font = "600 12px system-ui, sans-serif";
		g.fillStyle = colors.ink;
		for (const way of [0, 1]) {
			if (this.vertical) { g.textAlign = way ? "right" : "center"; g.fillText(PEERS[way], this.lines[way] + (way ? 16 : 0), 14); }
			else { g.textAlign = "left"; g.fillText(PEERS[way], this.start, this.lines[way] + (way ? 13 : -13)); }
		}
		if (state.back > 0) return;
		g.strokeStyle = colors.accent; // now
		g.setLineDash([2, 3]);
		const [x0, y0] = this.place(to, 0), [x1, y1] = this.place(to, 1);
		g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke();
		g.setLineDash([]);
	}

	// drawFlights draws the lines: those that a selection is about, the others, or
	// (null) all. Lines of a colour are one path, which is what keeps a full view
	// smooth.
	drawFlights(g, bright) {
		const now = state.now, ids = this.bright(), strokes = new Map(), crosses = [], beads = [], rings = [], locks = [];
		const add = (key, ...points) => { let list = strokes.get(key); if (!list) strokes.set(key, list = []); list.push(points); };
		const crowded = this.flights.length > 90;
		for (const f of this.flights) {
			if (bright !== null && ids.has(f.id) !== bright) continue;
			const far = f.from ? way => 1 - way : way => way;
			const travel = Math.max(f.arrives - f.sent, 1e-6), breaks = f.lost ? (f.outcome === 4 ? 0.1 : 0.36 + f.id * 37 % 30 / 100) : 1;
			const on = Math.min(breaks, (now - f.sent) / travel), end = f.sent + travel * on, flying = on < breaks;
			add(f.looks[1] + (flying ? "!" : ""), this.place(f.sent, far(0)), this.place(end, far(on)));
			if (f.lost && !flying) crosses.push(this.place(end, far(on)));
			if (f.copies === 2) {
				const again = Math.min(1, (now - f.sent) / (f.again - f.sent));
				add(f.looks[1] + "=", this.place(f.sent, far(0)), this.place(f.sent + (f.again - f.sent) * again, far(again)));
			}
			if (!flying && !f.lost && f.got[0] >= 2) rings.push([this.place(f.arrives, far(1)), f.got[0]]);
			if (f.copies === 2 && now >= f.again && f.got[1] >= 2) rings.push([this.place(f.again, far(1)), f.got[1]]);
			if (f.events && on > 0.14) beads.push(this.place(f.sent + travel * 0.14, far(0.14)));
			if (f.sealed && !crowded && on > 0.24) locks.push(this.place(f.sent + travel * 0.24, far(0.24)));
		}
		for (const [key, lines] of strokes) {
			g.strokeStyle = colors[key.replace(/[!=]/, "")];
			g.globalAlpha = bright === false ? 0.24 : key.endsWith("!") ? 1 : crowded && !bright ? 0.55 : 0.8;
			g.lineWidth = bright ? 2.5 : key.endsWith("!") ? 2 : crowded ? 1 : 1.4;
			g.setLineDash(key.endsWith("=") ? [4, 4] : []);
			g.beginPath();
			for (const [a, b] of lines) { g.moveTo(a[0], a[1]); g.lineTo(b[0], b[1]); }
			g.stroke();
		}
		g.setLineDash([]);
		g.globalAlpha = bright === false ? 0.25 : 1;
		this.drawMarks(g, crosses, beads, rings, locks);
		g.globalAlpha = 1;
	}

	drawMarks(g, crosses, beads, rings, locks) {
		g.strokeStyle = colors.lost;
		g.lineWidth = 2;
		g.beginPath();
		for (const [x, y] of crosses) { g.moveTo(x - 4, y - 4); g.lineTo(x + 4, y + 4); g.moveTo(x + 4, y - 4); g.lineTo(x - 4, y + 4); }
		g.stroke();
		g.fillStyle = colors.event;
		g.beginPath();
		for (const [x, y] of beads) { g.moveTo(x + 3, y); g.arc(x, y, 3, 0, 7); }
		g.fill();
		g.lineWidth = 1.5;
		for (const [[x, y], got] of rings) {
			g.strokeStyle = got === 2 ? colors.late : got === 3 ? colors.muted : colors.lost;
			g.fillStyle = colors.panel;
			g.beginPath(); g.arc(x, y, 4, 0, 7); g.fill(); g.stroke();
		}
		for (const [x, y] of locks) lock(g, x, y, colors.ink);
	}

	// drawEvents marks when events were handed to Send and when they were delivered.
	drawEvents(g) {
		this.marks = [];
		const status = state.status[this.run];
		if (!status) return;
		const chosen = state.selected && state.selected.run === this.run && state.selected.kind === "event" ? state.detail : null;
		for (const e of chosen ? [chosen] : status.Events) {
			for (const [t, way, color, full] of [[e.Sent, e.From, colors.event, false], [e.Delivered, 1 - e.From, colors.good, true]]) {
				if (t < 0 || t > state.now - state.back || t < state.now - state.back - this.shown) continue;
				const [x, y] = this.place(t, way), r = chosen ? 7 : 5;
				this.marks.push([x, y, e]);
				g.beginPath(); g.moveTo(x, y - r); g.lineTo(x + r, y); g.lineTo(x, y + r); g.lineTo(x - r, y); g.closePath();
				g.fillStyle = full ? color : colors.panel; g.fill();
				g.strokeStyle = color; g.lineWidth = 1.5; g.stroke();
			}
		}
	}

	// drawHeads draws what is in flight now where it is now.
	drawHeads(g, dim) {
		if (state.back > 0) return;
		const ids = this.bright(), flying = this.flights.filter(f => !f.lost && f.arrives > state.now && f.sent <= state.now);
		const small = flying.length > 24;
		g.font = "700 10px system-ui, sans-serif";
		g.textAlign = "center";
		g.textBaseline = "middle";
		for (const f of flying) {
			const on = (state.now - f.sent) / Math.max(f.arrives - f.sent, 1e-6), [x, y] = this.place(state.now, f.from ? 1 - on : on);
			g.globalAlpha = dim && !ids.has(f.id) ? 0.5 : 1;
			g.fillStyle = colors[f.looks[1]];
			g.beginPath();
			if (small) { g.arc(x, y, 3, 0, 7); g.fill(); continue; }
			const wide = f.sealed ? 28 : 18;
			g.roundRect(x - wide / 2, y - 8, wide, 16, 4); g.fill();
			g.fillStyle = colors.panel;
			g.fillText(f.looks[0], x - (f.sealed ? 5 : 0), y + 0.5);
			if (f.sealed) lock(g, x + 6, y, colors.panel);
		}
		g.globalAlpha = 1;
	}

	drawTip(g, w, h) {
		const e = this.pointer && this.mark(this.pointer), f = this.pointer && this.hit(this.pointer);
		this.canvas.style.cursor = e || f ? "pointer" : "";
		if (!e && !f) return;
		const text = e ? `Event #${e.Number} of the ${PEERS[e.From]} · ${e.Delivered >= 0 ? "delivered after " + ms(e.Delivered - e.Sent) : "not there yet"}` : describe(f);
		g.font = "12px system-ui, sans-serif";
		const wide = g.measureText(text).width + 16, x = Math.min(w - wide - 4, Math.max(4, this.pointer[0] - wide / 2)), y = this.pointer[1] > 60 ? this.pointer[1] - 34 : this.pointer[1] + 18;
		g.fillStyle = colors.ink;
		g.beginPath(); g.roundRect(x, y, wide, 22, 6); g.fill();
		g.fillStyle = colors.bg; g.textAlign = "left"; g.textBaseline = "middle";
		g.fillText(text, x + 8, y + 11.5);
	}

	// mark returns the event whose mark is at a point.
	mark([x, y]) {
		const found = this.marks.find(([mx, my]) => Math.hypot(x - mx, y - my) < 8);
		return found && found[2];
	}

	// hit returns the datagram nearest to a point, if it is near.
	hit([x, y]) {
		let best = null, least = 9;
		for (const f of this.flights) {
			const until = Math.min(f.arrives, state.now), on = (until - f.sent) / Math.max(f.arrives - f.sent, 1e-6) * (f.lost ? 0.66 : 1);
			const [ax, ay] = this.place(f.sent, f.from), [bx, by] = this.place(f.sent + (f.arrives - f.sent) * on, f.from ? 1 - on : on);
			const length = (bx - ax) ** 2 + (by - ay) ** 2, k = length ? Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
			const distance = Math.hypot(x - ax - k * (bx - ax), y - ay - k * (by - ay));
			if (distance < least) { least = distance; best = f; }
		}
		return best;
	}
}

// lock draws a padlock.
function lock(g, x, y, color) {
	g.strokeStyle = g.fillStyle = color;
	g.lineWidth = 1.3;
	g.beginPath(); g.arc(x, y - 1.5, 2.3, Math.PI, 0); g.stroke();
	g.fillRect(x - 3.5, y - 1.5, 7, 5.5);
}

const LOSSES = { 1: "lost", 2: "lost in a burst", 3: "lost in an outage", 4: "dropped by the queue" };
const ARRIVALS = ["in flight", "arrived", "arrived late", "duplicate", "stale", "refused"];

function typeName(f) { return (f.inner ? `${types[f.inner]} with events` : types[f.type] || `Type ${f.type}`); }

function describe(f) {
	const outcome = f.lost ? LOSSES[f.outcome] : ARRIVALS[f.got[0]] + (f.copies === 2 ? ", twice" : "");
	return `${typeName(f)} ${f.sequence} · ${f.bytes} bytes · ${outcome}`;
}

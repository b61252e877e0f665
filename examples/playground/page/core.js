"use strict";
// What everything else stands on: small helpers, the state of the page, and the
// unpacking of the library.

const $ = id => document.getElementById(id);

// el makes an element. Keys that begin with "on" are listeners.
function el(tag, props = {}, ...children) {
	const node = document.createElement(tag);
	for (const [key, value] of Object.entries(props)) {
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else if (key === "class") node.className = value;
		else if (key === "style") node.style.cssText = value;
		else if (value === true) node.setAttribute(key, "");
		else if (value !== false && value != null) node.setAttribute(key, value);
	}
	node.append(...children.filter(child => child != null));
	return node;
}

const PEERS = ["client", "server"];
const SPEEDS = [1 / 50, 1 / 20, 1 / 10, 1 / 5, 1 / 2, 1, 2, 5, 10, 20, 50];
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

// TYPES says how each type of datagram looks: its letter, and the name of its
// colour.
const TYPES = {
	1: ["C", "leave"], 2: ["A", "leave"], 3: ["I", "input"], 4: ["S", "snapshot"],
	5: ["E", "event"], 6: ["H", "heartbeat"], 7: ["D", "leave"], 8: ["B", "event"],
};

// state is all that the page knows beside what the library tells.
const state = {
	address: "",      // the settings and all that was done
	parsed: null,     // what it says
	playing: false,
	speed: 3,         // an index of SPEEDS
	zoom: 1,
	now: 0,           // virtual milliseconds
	back: 0,          // how far before now the diagrams end
	runs: 1,
	run: 0,           // the one that windows, events and inspector are about
	stopAt: Infinity, // when playing pauses by itself, and what then
	onStop: null,
	selected: null,   // {run, kind: "flight"|"event", id} or {…, side, number}
	detail: null,     // what the library says of it
	lit: new Set(),   // flights that the selection acknowledges
	status: [],       // by run
	version: 0,       // grows when a run begins anew
};

const ms = (t, digits = 1) => t < 0 ? "–" : t.toFixed(digits) + " ms";
const seconds = t => (t / 1000).toFixed(3) + " s";
const json = text => JSON.parse(text);
const say = text => { $("announce").textContent = text; };

// colors are those of the theme, read once for the canvases.
let colors = {};
function readColors() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ["bg", "panel", "ink", "muted", "line", "soft", "accent", "input", "snapshot", "event", "heartbeat", "leave", "lost", "good", "late", "run2"]) {
		colors[name] = style.getPropertyValue("--" + name).trim();
	}
}

// fit makes a canvas as sharp as the screen, and returns its context and size.
function fit(canvas) {
	const ratio = Math.min(devicePixelRatio || 1, 3), w = canvas.clientWidth, h = canvas.clientHeight;
	if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
	}
	const g = canvas.getContext("2d");
	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.clearRect(0, 0, w, h);
	return { g, w, h };
}

// niceStep returns 1, 2 or 5 times a power of ten, so that a range has about so
// many steps.
function niceStep(range, steps) {
	const rough = range / steps, power = 10 ** Math.floor(Math.log10(rough));
	return power * [1, 2, 5, 10].find(m => m * power >= rough);
}

function trouble(text) {
	$("trouble").hidden = !text;
	$("trouble").textContent = text || "";
}

// unpack starts the library; it calls playgroundReady when it is there.
async function unpack() {
	if (!("DecompressionStream" in window) || !("WebAssembly" in window)) {
		throw new Error("this browser is too old for the page: it has no WebAssembly or no DecompressionStream");
	}
	const text = atob($("wasm").textContent.trim());
	$("wasm").textContent = "";
	const packed = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const bytes = await new Response(stream).arrayBuffer();
	const go = new Go();
	const { instance } = await WebAssembly.instantiate(bytes, go.importObject);
	go.run(instance).then(() => {
		state.playing = false;
		trouble("The library has stopped. Reload the page; the address brings you back here.");
	});
}

"use strict";
// The page at work: time, what the buttons do, and the address.

let diagrams = [];

// begin starts the runs of an address anew, paused. A malformed one gives the
// defaults and says so.
function begin(address, keepTrouble = false) {
	const parsed = json(ackbits.parse(address));
	if (!keepTrouble || parsed.Error) trouble(parsed.Error && `This address means nothing here, so these are the defaults: ${parsed.Error}.`);
	pause();
	state.parsed = parsed;
	state.address = parsed.Address.replace(/&t=[^&]*$/, "");
	const wrong = ackbits.start(state.address);
	if (wrong) return trouble(wrong);
	state.runs = parsed.Compare ? 2 : 1;
	state.run = Math.min(state.run, state.runs - 1);
	state.version++;
	state.now = state.back = 0;
	state.stopAt = Infinity;
	state.onStop = null;
	samples[0].length = samples[1].length = 0;
	writeAddress();
	buildDiagrams();
	select(null);
	refresh(true);
}

// settle takes over settings that hold from the start, and begins anew with them.
function settle(pairs) {
	leaveScene();
	const playing = state.playing;
	begin(`${state.address}&${pairs}`);
	if (playing) play();
}

// change gives a field of the link or the load another value: now, if the game is
// on, and else from the start.
function change(info, value) {
	leaveScene();
	if (state.now === 0 && !state.status[0].Actions) return settle(`${info.Key}=${value / info.Scale}`);
	if (state.status[0].Values[info.Key] === value) return;
	act(info.Key, value);
}

function act(verb, value) {
	leaveScene();
	const wrong = ackbits.act(verb, value);
	trouble(wrong);
	state.address = ackbits.address().replace(/&t=[^&]*$/, "");
	state.parsed = json(ackbits.parse(state.address));
	writeAddress();
	refresh(true);
}

function usePreset(preset) {
	settle(`do=none&link=${preset.Key}`);
	say(`${preset.Label}: ${preset.About}`);
	play();
}

// fromHere begins anew with the settings as they are now, and without what was
// changed on the way.
function fromHere() {
	const values = state.status[0].Values;
	settle("do=none&" + about.fields.filter(f => f.Group !== "options").map(f => `${f.Key}=${values[f.Key] / f.Scale}`).join("&"));
}

// leaveScene ends the guided part when somebody takes over.
function leaveScene() { if (sceneAt >= 0) closeScene(); }

function writeAddress() { history.replaceState(null, "", "#" + state.address); }

function buildDiagrams() {
	if (diagrams.length !== state.runs) {
		diagrams = Array.from({ length: state.runs }, (_, run) => new Diagram(run));
		$("diagrams").replaceChildren(...diagrams.map(d => d.box));
	}
	const names = [state.parsed.Values, state.parsed.Versus].map(values => about.fields.filter(f => f.Group === "options" && values[f.Key]).map(f => f.Switch ? f.Label : `${f.Label} ${values[f.Key]}`).join(", ") || "no options");
	diagrams.forEach((d, run) => {
		d.box.classList.toggle("many", state.runs > 1);
		d.caption.textContent = state.runs > 1 ? `Run ${run + 1}: ${names[run]}` : "";
		d.box.setAttribute("aria-label", state.runs > 1 ? `Run ${run + 1}, ${names[run]}` : "Datagrams between client and server");
	});
	$("windows-run").replaceChildren(...(state.runs > 1 ? [0, 1].map(run => el("button", { type: "button", "aria-pressed": run === state.run, onclick: () => chooseRun(run) }, `Run ${run + 1}`)) : []));
	chooseRun(state.run);
}

// chooseRun says which run the panels are about.
function chooseRun(run) {
	if (state.selected && state.selected.run !== run) select(null);
	state.run = run;
	diagrams.forEach(d => d.box.classList.toggle("chosen", d.run === run));
	$("windows-run").querySelectorAll("button").forEach((b, i) => b.setAttribute("aria-pressed", i === run));
	if (state.status[run]) refresh(true);
}

// ---- Time

let lastFrame = 0, lastSlow = 0, resting = 0;

function play() {
	state.playing = true;
	state.back = 0;
	showPlay();
}

function pause() {
	if (!state.playing) return;
	state.playing = false;
	showPlay();
	refresh(true);
}

function togglePlay() { state.playing ? pause() : play(); }

function showPlay() {
	$("play").classList.toggle("playing", state.playing);
	$("play").setAttribute("aria-label", state.playing ? "Pause" : "Play");
}

function setSpeed(index) {
	state.speed = index;
	$("speed").value = index;
	const speed = SPEEDS[index], text = speed < 1 ? `1/${Math.round(1 / speed)}×` : `${speed}×`;
	$("speed-out").textContent = text;
	$("speed").setAttribute("aria-valuetext", speed < 1 ? `one ${Math.round(1 / speed)}th` : `${speed} times`);
}

function zoom(by) { state.zoom = Math.max(1 / 8, Math.min(8, state.zoom * 2 ** (-by / 2))); }

// advance lets the game go on to a time, in steps, so that a fast one does not
// hold up the page for longer than a part of a frame: then it is late.
function advance(until, budget = Infinity) {
	const start = performance.now();
	until = Math.round(Math.min(until, state.stopAt) * 1000) / 1000; // the library counts whole microseconds
	while (until - state.now > 0.0005 && performance.now() - start < budget) state.now = ackbits.advance(Math.min(until, state.now + 50));
	if (state.stopAt - state.now < 0.0005) {
		const then = state.onStop;
		state.stopAt = Infinity;
		state.onStop = null;
		pause();
		refresh(true);
		if (then) then();
	}
}

function step(tick) {
	pause();
	state.back = 0;
	state.stopAt = Infinity;
	state.now = ackbits.step(state.run, tick);
	refresh(true);
	const newest = state.status[state.run];
	say(`${seconds(state.now)}, ${newest.Sent} datagrams sent`);
}

// frame draws what moves; the panels that only change follow a few times a second.
function frame(now) {
	const begun = performance.now(), passed = Math.min(100, now - lastFrame);
	lastFrame = now;
	if (state.playing) advance(state.now + passed * SPEEDS[state.speed], 9);
	if (state.playing || ++resting % 4 === 0) for (const d of diagrams) d.draw(); // what stands still needs less
	$("clock").textContent = (state.now / 1000).toFixed(3);
	if (state.playing && now - lastSlow > 120) {
		lastSlow = now;
		refresh(false);
	}
	pace.work.push(performance.now() - begun);
	if (pace.work.length > 300) pace.work.shift();
	requestAnimationFrame(frame);
}

// refresh brings the panels up to date.
function refresh(all) {
	resting = 3; // the next frame draws
	for (let run = 0; run < state.runs; run++) state.status[run] = json(ackbits.status(run));
	showWindows();
	showEvents();
	showFigures();
	refreshDetail();
	drawCharts();
	if (all) { showSettings(); showTable(); showEnds(); }
	else if (state.status[0].Coming !== coming) { coming = state.status[0].Coming; showSettings(); showEnds(); }
	const ends = state.status[state.run].Peers.map(p => p.Error).join();
	if (ends !== shownEnds) { shownEnds = ends; showEnds(); }
}

let coming = 0, shownEnds = "";

// showEnds says that a session has ended, and why.
function showEnds() {
	const peers = state.status[state.run].Peers;
	for (const b of document.querySelectorAll('[data-verb="leave"]')) b.disabled = peers.every(p => p.Error);
	const over = peers.filter(p => p.Error).map(p => `The ${p.Name}'s session ended at ${seconds(p.Ended)}: ${p.Error}.`).join(" ");
	$("hint").replaceChildren(...(over ? [el("b", {}, over)] : HINT));
}

let HINT = [];

// pace holds what the latest frames cost, in milliseconds of work, for whoever
// wants to know how smooth it is, and when the page was ready.
const pace = { work: [], ready: 0 };

// ---- Wiring

function wire() {
	$("play").onclick = togglePlay;
	$("restart").onclick = () => { const playing = state.playing; begin(state.address); if (playing) play(); say("Back to the start"); };
	$("step").onclick = () => step(false);
	$("step-tick").onclick = () => step(true);
	$("speed").oninput = e => setSpeed(+e.target.value);
	$("zoom-in").onclick = () => zoom(1);
	$("zoom-out").onclick = () => zoom(-1);
	for (const b of document.querySelectorAll("[data-verb]")) b.onclick = () => { const from = $(b.dataset.from); if (from && !from.reportValidity()) return; act(b.dataset.verb, +(from ? from.value : b.dataset.value)); if (!state.playing) say("Done; it shows when the game goes on"); };
	$("share").onclick = () => copy($("share"), location.href.split("#")[0] + "#" + state.address + (state.now > 0 ? `&t=${(Math.floor(state.now * 1000) / 1e6)}` : ""));
	$("check-copy").onclick = () => copy($("check-copy"), checkCommand());
	$("theme").onclick = () => {
		const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
		document.documentElement.dataset.theme = dark ? "light" : "dark";
		restyle();
	};
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
	addEventListener("resize", () => drawCharts());
	addEventListener("hashchange", () => openAddress(location.hash));
	$("listing").addEventListener("toggle", showTable);
	document.addEventListener("keydown", e => {
		if (e.target !== document.body || e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === " ") togglePlay();
		else if (e.key === "n") step(false);
		else if (e.key === "t") step(true);
		else return;
		e.preventDefault();
	});
}

function restyle() { readColors(); drawCharts(); }

async function copy(button, text) {
	const was = button.textContent;
	try {
		await navigator.clipboard.writeText(text);
		button.textContent = "Copied";
	} catch {
		prompt("Copy this:", text); // a page from a folder may not reach the clipboard
	}
	say("Copied");
	setTimeout(() => { button.textContent = was; }, 1200);
}

// openAddress shows what an address says; with a moment it stops there.
function openAddress(hash) {
	let fragment = hash.replace(/^#/, "");
	try { fragment = decodeURIComponent(fragment); } catch { /* the library says what is wrong with it */ }
	leaveScene();
	begin(fragment);
	if (state.parsed.Moment > 0) {
		state.now = ackbits.advance(state.parsed.Moment);
		refresh(true);
	} else if (!STILL.matches) play();
}

// playgroundReady is called by the library once it is there.
function playgroundReady() {
	try {
		ready();
	} catch (error) { // the library would take it for its own
		trouble("The page could not start: " + error.message);
		reportError(error);
	}
}

function ready() {
	about = json(ackbits.describe());
	types = json(ackbits.types());
	HINT = [...$("hint").childNodes];
	readColors();
	buildSettings();
	buildWindows();
	buildEvents();
	buildCharts();
	buildLegend();
	buildScenes();
	wire();
	$("loading").hidden = true;
	$("main").hidden = false;
	setSpeed(2);
	openAddress(location.hash || "#link=loss5"); // there is more to see than without loss
	pace.ready = performance.now();
	requestAnimationFrame(now => { lastFrame = now; frame(now); });
}

unpack().catch(error => {
	$("loading").hidden = true;
	trouble("The page could not start: " + error.message);
});

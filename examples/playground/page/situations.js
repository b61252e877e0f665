"use strict";
// The guided situations. What they are and where in a run they happen comes from
// the library; here they are played.

let scenes = [], sceneAt = -1;

function buildScenes() {
	scenes = json(ackbits.scenes());
	scenes.forEach((scene, i) => $("scenes").append(el("li", {}, el("button", { type: "button", "aria-pressed": "false", onclick: () => playScene(i) }, el("i", { "aria-hidden": "true" }, String(i + 1)), scene.Title))));
	$("scene-next").onclick = () => sceneAt + 1 < scenes.length ? playScene(sceneAt + 1) : closeScene();
	$("scene-again").onclick = () => playScene(sceneAt);
	$("scene-close").onclick = closeScene;
}

function playScene(i) {
	const scene = scenes[i], shot = json(ackbits.shoot(scene.Key));
	if (shot.Error) return trouble(shot.Error);
	sceneAt = i;
	$("scene").hidden = false;
	$("scene-title").textContent = scene.Title;
	$("scene-body").textContent = scene.Text;
	$("scene-next").textContent = i + 1 < scenes.length ? "Next" : "Done";
	markScene();
	begin(shot.Address);
	setSpeed(SPEEDS.indexOf(SPEEDS.reduce((a, b) => Math.abs(b - scene.Speed) < Math.abs(a - scene.Speed) ? b : a)));
	advance(shot.From);
	state.stopAt = shot.To;
	state.onStop = () => select(shot.Flight >= 0 ? { run: 0, kind: "flight", id: shot.Flight } : { run: 0, kind: "event", side: 0, number: shot.Event });
	if (STILL.matches) advance(shot.To);
	else play();
}

function markScene() { document.querySelectorAll("#scenes button").forEach((b, i) => b.setAttribute("aria-pressed", i === sceneAt)); }

// closeScene leaves the guided part; the game stays where it is.
function closeScene() {
	sceneAt = -1;
	$("scene").hidden = true;
	markScene();
	state.stopAt = Infinity;
	state.onStop = null;
}

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/examples/playground/page"
	"github.com/ackbits/ackbits/examples/playground/sim"
	"github.com/ackbits/ackbits/examples/playground/view"
)

var (
	chromium *Browser
	address  string // of the page, a file
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if _, err := Find(); errors.Is(err, ErrNoBrowser) && os.Getenv("PLAYGROUND_BROWSER") != "required" {
		fmt.Println("NOT TESTED:", err)
		return 0
	}
	dir, err := os.MkdirTemp("", "playground")
	if err == nil {
		defer os.RemoveAll(dir)
		address, err = WritePage(dir)
	}
	if err == nil {
		chromium, err = Open()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer chromium.Close()
	return m.Run()
}

// look is how a tab presents itself to the page.
type look struct {
	width, height int64
	dark, still   bool // the user's wishes: a dark scheme, no motion
}

var desktop = look{width: 1400, height: 900}

// open opens the page, and at the end of the test checks that it complained of
// nothing and asked for nothing but itself.
func open(t *testing.T, l look, fragment string) *Tab {
	tab, err := chromium.Tab()
	require.NoError(t, err)
	t.Cleanup(tab.Close)
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}}
	_, err = chromedp.Call(tab.Ctx, emulation.SetEmulatedMedia, media)
	require.NoError(t, err)
	_, err = chromedp.Call(tab.Ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 600})
	require.NoError(t, err)
	require.NoError(t, tab.Load(address+fragment))
	t.Cleanup(func() {
		require.Empty(t, tab.Complaints())
		for _, request := range tab.Requests() {
			require.True(t, request == "about:blank" || strings.HasPrefix(request, address) || strings.HasPrefix(request, "data:"), request)
		}
	})
	return tab
}

func eval[T any](t *testing.T, tab *Tab, expression string) T {
	t.Helper()
	v, err := Eval[T](tab, expression)
	require.NoError(t, err, expression)
	return v
}

// until waits until an expression is true.
func until(t *testing.T, tab *Tab, expression string) {
	t.Helper()
	require.Eventually(t, func() bool { return eval[bool](t, tab, expression) }, 20*time.Second, 20*time.Millisecond, expression)
}

// click clicks the middle of what a selector finds, as a hand would.
func click(t *testing.T, tab *Tab, selector string) {
	t.Helper()
	at := eval[[]float64](t, tab, fmt.Sprintf(`(() => { const n = document.querySelector(%q); n.scrollIntoView({ block: "center" }); const r = n.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`, selector))
	require.NoError(t, tab.Do(chromedp.MouseClickXY(at[0], at[1])))
}

func TestStartsFromAFile(t *testing.T) {
	tab := open(t, desktop, "")
	until(t, tab, `state.playing && state.now > 30`)
	ready := eval[float64](t, tab, `pace.ready`)
	t.Logf("ready after %.0f ms", ready)
	require.Less(t, ready, 4000.0, "a second on a machine that does nothing else")
}

// What the command writes is the page that is tested here, and what it serves.
func TestCommandWritesThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	cmd := exec.Command("go", "run", "./examples/playground", "-out", file)
	cmd.Dir = filepath.Join("..", "..", "..")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	server := httptest.NewServer(page.Handler(written))
	defer server.Close()
	tab, err := chromium.Tab()
	require.NoError(t, err)
	defer tab.Close()
	require.NoError(t, tab.Load(server.URL+"/#loss=5"))
	until(t, tab, `state.now > 20`)
	require.Empty(t, tab.Complaints())
}

func TestProgramIsSmall(t *testing.T) {
	packed, err := page.Program()
	require.NoError(t, err)
	t.Logf("%d bytes compressed", len(packed))
	require.Less(t, len(packed), 1_200_000)
}

func TestEachPresetPlays(t *testing.T) {
	tab := open(t, desktop, "")
	for _, preset := range sim.Presets {
		click(t, tab, `[data-preset="`+preset.Key+`"]`)
		until(t, tab, `state.playing && state.now > 60 && state.status[0].Sent > 4`)
		require.Equal(t, "true", eval[string](t, tab, `document.querySelector('[data-preset="`+preset.Key+`"]').getAttribute("aria-pressed")`))
		require.Contains(t, eval[string](t, tab, `location.hash`), "seed=1")
	}
}

// What Go comes to on this machine, the page comes to as well: asked for a report,
// and played bit by bit as frames do.
func TestFiguresEqualGo(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "")
	var fragments []string
	for _, preset := range sim.Presets {
		for _, options := range []string{"", "&adaptive=0&bundle=0", "&ordered=1&wide=1&sealed=1&eventrate=3000", "&seed=99&dup=3&reorder=5&jitter=9&vs=none", "&do=1.25:shout-80,2:cut-400,3.5:loss-20,5:client-120,6:leave-1"} {
			fragments = append(fragments, "link="+preset.Key+options)
		}
	}
	for _, fragment := range fragments {
		s, err := sim.Parse(fragment)
		require.NoError(t, err)
		want, err := sim.Report(s, 12*time.Second)
		require.NoError(t, err)
		require.Equal(t, want, eval[string](t, tab, fmt.Sprintf(`ackbits.report(%q, 12000)`, fragment)))

		run, err := sim.New(s)
		require.NoError(t, err)
		run.Advance(3_333_333 * time.Microsecond)
		figures := eval[string](t, tab, fmt.Sprintf(`(() => { begin(%q); for (let t = 0; t < 3333.333; t += 16.6) advance(t); advance(3333.333); return JSON.stringify(json(ackbits.status(0)).Figures); })()`, fragment))
		var got []sim.Figure
		require.NoError(t, json.Unmarshal([]byte(figures), &got))
		require.Equal(t, run.Figures(), got, fragment)
	}
}

// The command that the page shows comes to what the page shows.
func TestCommandEqualsPage(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#link=cafe&seed=5&vs=none&t=4.2")
	command := eval[string](t, tab, `$("check").textContent`)
	shown := eval[string](t, tab, `state.status[1].Figures.map(f => "  " + f.Key + ": " + f.Value + "\n").join("")`)
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = filepath.Join("..", "..", "..")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	_, second, _ := strings.Cut(string(out), "run 2\n")
	require.Equal(t, shown, second)
}

func TestSteps(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#t=1")
	require.Equal(t, 1000.0, eval[float64](t, tab, `state.now`), "it stops at the moment of the address")
	click(t, tab, "#step-tick")
	until(t, tab, `state.now > 1016 && state.now < 1017`)
	sent := eval[float64](t, tab, `state.status[0].Sent`)
	for range 6 {
		click(t, tab, "#step")
	}
	until(t, tab, fmt.Sprintf(`state.status[0].Sent > %v`, sent))
	before := eval[float64](t, tab, `state.now`)
	require.NoError(t, tab.Do(chromedp.Focus(".diagram"), chromedp.KeyEvent("n"), chromedp.KeyEvent("t")))
	until(t, tab, fmt.Sprintf(`state.now > %v`, before))
	click(t, tab, "#restart")
	until(t, tab, `state.now === 0 && state.status[0].Sent === 0`)
	require.False(t, eval[bool](t, tab, `state.playing`))
	click(t, tab, "#play")
	until(t, tab, `state.now > 20`)
}

func TestCompare(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#loss=10")
	click(t, tab, "#compare")
	until(t, tab, `document.querySelectorAll(".diagram").length === 2`)
	require.Contains(t, eval[string](t, tab, `location.hash`), "vs=none")
	eval[any](t, tab, `advance(5000), refresh(true), 0`)
	require.Equal(t, 3.0, eval[float64](t, tab, `document.querySelector("#figures tbody tr").children.length`))
	require.NotEqual(t, eval[string](t, tab, `figure(state.status[0], "digest")`), eval[string](t, tab, `figure(state.status[1], "digest")`))
	click(t, tab, `[aria-label="Wide, run 2"]`)
	until(t, tab, `location.hash.includes("vs=wide") && json(ackbits.status(1)).Peers[0].Cells.length === 65`)
	click(t, tab, `#windows-run button:last-child`)
	until(t, tab, `state.run === 1 && document.querySelectorAll("#windows .cells.wide").length === 2`)
	click(t, tab, "#compare")
	until(t, tab, `document.querySelectorAll(".diagram").length === 1`)
}

func TestMalformedAddressFallsBackWithAWord(t *testing.T) {
	for fragment, word := range map[string]string{"#loss=900": "loss: 900 is not from 0 to 90", "#color=red": "no setting", "#%E0%A4%A": "has no value", "#vs=adaptive,moon": "no option", "#<img src=x onerror=alert(1)>": "no setting"} {
		tab := open(t, desktop, fragment)
		require.Contains(t, eval[string](t, tab, `$("trouble").textContent`), word)
		require.True(t, eval[bool](t, tab, `!$("trouble").hidden`))
		require.Equal(t, "#seed=1", eval[string](t, tab, `location.hash`))
		until(t, tab, `state.now > 20`)
		tab.Close()
	}
}

// A change on the way is in the address, and the address plays it again.
func TestAddressHoldsWhatWasDone(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#t=1.5")
	click(t, tab, `[data-verb="shout"]`)
	eval[any](t, tab, `advance(2500), change(inputs.values.loss.info, 1500), advance(4000), refresh(true), 0`)
	shown := eval[string](t, tab, `JSON.stringify(state.status[0].Figures)`)
	hash := eval[string](t, tab, `location.hash`)
	require.Contains(t, hash, "do=1.5:shout-50,2.5:loss-15")
	again := open(t, look{width: 1400, height: 900, still: true}, hash+"&t=4")
	require.Equal(t, shown, eval[string](t, again, `JSON.stringify(state.status[0].Figures)`))
	require.Contains(t, eval[string](t, again, `$("script").textContent`), "2 of 2 changes")
	require.Equal(t, "15", eval[string](t, again, `$("f-loss").value`))
	click(t, again, "#script button")
	until(t, again, `state.now === 0 && location.hash === "#seed=1&loss=15"`)
}

func TestClickOnADatagramShowsItsBytes(t *testing.T) {
	for _, fragment := range []string{"#t=2", "#sealed=1&t=2", "#wide=1&loss=20&t=2"} {
		tab := open(t, look{width: 1400, height: 900, still: true}, fragment)
		at := eval[[]float64](t, tab, `(() => { scrollTo(0, 0); const d = diagrams[0]; d.draw(); const f = d.flights.find(f => f.events && !f.lost && f.arrives < state.now - 20), r = d.canvas.getBoundingClientRect(), [x, y] = d.place(f.sent + (f.arrives - f.sent) * 0.4, f.from ? 0.6 : 0.4); wanted = f.id; return [r.left + x, r.top + y]; })(); var wanted`)
		require.NoError(t, tab.Do(chromedp.MouseClickXY(at[0], at[1])))
		until(t, tab, `state.selected && state.selected.kind === "flight"`)
		text := eval[string](t, tab, `$("inspector").textContent`)
		for _, field := range []string{"format", "type", "token", "sequence", "ack_bits", "Acknowledges"} {
			require.Contains(t, text, field)
		}
		require.Greater(t, eval[float64](t, tab, `state.lit.size`), 10.0, "what it acknowledges lights up")
		if strings.Contains(fragment, "sealed") {
			require.Contains(t, text, "What everybody on the way sees")
			require.Greater(t, eval[float64](t, tab, `document.querySelectorAll(".hex .secret").length`), 15.0)
		}
		click(t, tab, ".event-row")
		until(t, tab, `state.selected.kind === "event" && $("inspector").textContent.includes("Its life")`)
		click(t, tab, `.cell.ack`)
		until(t, tab, `state.selected.kind === "flight"`)
		tab.Close()
	}
}

func TestWalkFromTheInspector(t *testing.T) {
	tab := open(t, look{width: 390, height: 844, still: true}, "#t=2")
	eval[any](t, tab, `select({ run: 0, kind: "flight", id: 50 }), 0`)
	click(t, tab, `[data-key="walk1"]`)
	until(t, tab, `state.selected.id === 51 && state.detail.ID === 51`)
	click(t, tab, `[data-key="walk-1"]`)
	until(t, tab, `state.selected.id === 50 && diagrams[0].flights.some(f => f.id === 50)`)
}

// With Ordered an event that is there may wait for those before it.
func TestOrderedWaits(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#loss=30&ordered=1&cevents=60&t=3")
	waits := `json(ackbits.status(0)).Events.some(e => e.First >= 0 && e.Delivered !== e.First)`
	eval[any](t, tab, `(() => { for (let t = 3000; t < 9000 && !(`+waits+`); t += 5) advance(t); refresh(true); })()`)
	require.True(t, eval[bool](t, tab, waits))
	require.Positive(t, eval[float64](t, tab, `document.querySelectorAll('.event-row circle[stroke="var(--good)"]').length`))
}

func TestClickOnAnEventsMark(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#loss=10&t=2.03")
	at := eval[[]float64](t, tab, `(() => { scrollTo(0, 0); const d = diagrams[0]; d.draw(); const r = d.canvas.getBoundingClientRect(), [x, y] = d.marks.find(([x]) => x < d.end - 60); return [r.left + x, r.top + y]; })()`)
	require.NoError(t, tab.Do(chromedp.MouseClickXY(at[0], at[1])))
	until(t, tab, `state.selected && state.selected.kind === "event" && state.lit.size > 0`)
	click(t, tab, `.life button`)
	until(t, tab, `state.selected.kind === "flight" && $("inspector").textContent.includes("Bytes, by field")`)
}

func TestTable(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#loss=10&t=2")
	click(t, tab, "#listing summary")
	until(t, tab, `document.querySelectorAll("#table tbody tr").length > 10`)
	click(t, tab, "#table tbody tr:nth-child(3) button")
	until(t, tab, `state.selected.kind === "flight"`)
}

func TestLookingBack(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#t=3")
	at := eval[[]float64](t, tab, `(() => { scrollTo(0, 0); const r = diagrams[0].canvas.getBoundingClientRect(); return [r.left + 300, r.top + 150]; })()`)
	require.NoError(t, tab.Do(chromedp.DragAndDropXY(at[0], at[1], at[0]+200, at[1])))
	until(t, tab, `state.back > 50 && diagrams[0].flights.every(f => f.sent < state.now - state.back + 1)`)
	click(t, tab, "#play")
	until(t, tab, `state.back === 0 && state.now > 3000`)
}

func TestThemes(t *testing.T) {
	tab := open(t, desktop, "")
	light := eval[string](t, tab, `getComputedStyle(document.body).backgroundColor`)
	click(t, tab, "#theme")
	until(t, tab, `getComputedStyle(document.body).backgroundColor !== "`+light+`"`)
	click(t, tab, "#theme")
	until(t, tab, `getComputedStyle(document.body).backgroundColor === "`+light+`"`)
	dark := open(t, look{width: 1400, height: 900, dark: true}, "")
	require.NotEqual(t, light, eval[string](t, dark, `getComputedStyle(document.body).backgroundColor`))
}

func TestKeyboardAlone(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "#t=1.2")
	require.NoError(t, tab.Do(chromedp.Focus(".diagram")))
	for _, key := range []string{"ArrowLeft", "ArrowLeft", "ArrowRight"} {
		eval[any](t, tab, fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true, cancelable: true })), 0`, key))
	}
	until(t, tab, `state.selected && state.selected.id === state.status[0].Sent - 1`)
	require.Contains(t, eval[string](t, tab, `$("announce").textContent`), "sent at")
	// Tab comes by every control there is to see, and shows where it is.
	eval[any](t, tab, `(() => { document.activeElement.blur(); window.passed = new Set(); window.dim = []; document.addEventListener("focusin", e => { passed.add(e.target); if (getComputedStyle(e.target).outlineStyle === "none") dim.push(e.target.outerHTML.slice(0, 80)); }); })(), 0`)
	for range 200 {
		require.NoError(t, tab.Do(chromedp.KeyEvent(kb.Tab)))
	}
	missed := eval[[]string](t, tab, `[...document.querySelectorAll("button, input, summary, .diagram, a[href]")].filter(n => n.checkVisibility({ visibilityProperty: true }) && !n.disabled && n.tabIndex >= 0 && !n.closest("details:not([open]) > div") && !passed.has(n)).map(n => n.outerHTML.slice(0, 120))`)
	require.Empty(t, missed)
	require.Greater(t, eval[float64](t, tab, `passed.size`), 70.0)
	require.Empty(t, eval[[]string](t, tab, `dim`), "focus can be seen")
	nameless := eval[[]string](t, tab, `[...document.querySelectorAll("button, input")].filter(n => n.checkVisibility({ visibilityProperty: true }) && !(n.textContent.trim() || n.getAttribute("aria-label") || n.labels?.length || n.title)).map(n => n.outerHTML)`)
	require.Empty(t, nameless)
}

func TestScenes(t *testing.T) {
	tab := open(t, look{width: 1400, height: 900, still: true}, "")
	for i, scene := range view.Scenes {
		if i == 0 {
			click(t, tab, "#scenes li:first-child button")
		} else {
			click(t, tab, "#scene-next")
		}
		until(t, tab, fmt.Sprintf(`sceneAt === %d && !state.playing && state.detail !== null && state.stopAt === Infinity`, i))
		require.Equal(t, scene.Title, eval[string](t, tab, `$("scene-title").textContent`))
		require.Empty(t, eval[string](t, tab, `$("trouble").textContent`))
		require.NotContains(t, eval[string](t, tab, `$("inspector").textContent`), "Nothing selected")
	}
	require.Equal(t, "Done", eval[string](t, tab, `$("scene-next").textContent`))
	click(t, tab, "#scene-next")
	until(t, tab, `$("scene").hidden`)
}

// A scene plays by itself, and stops.
func TestSceneMoves(t *testing.T) {
	tab := open(t, desktop, "")
	click(t, tab, "#scenes li:nth-child(5) button")
	until(t, tab, `!state.playing && state.detail !== null && state.detail.Type === "Disconnect"`)
	require.Contains(t, eval[string](t, tab, `$("hint").textContent`), "session ended")
}

func TestSmooth(t *testing.T) {
	tab := open(t, desktop, "#client=250&server=250&loss=2")
	eval[any](t, tab, `setSpeed(5), advance(6000), play(), 0`)
	until(t, tab, `pace.work.length > 20`)
	eval[any](t, tab, `pace.work.length = 0`)
	until(t, tab, `pace.work.length > 100`)
	work := eval[[]float64](t, tab, `[...pace.work].sort((a, b) => a - b)`)
	flights := eval[float64](t, tab, `diagrams[0].flights.length`)
	t.Logf("a frame with %.0f datagrams takes %.1f ms of work, 9 of 10 at most %.1f", flights, work[len(work)/2], work[len(work)*9/10])
	require.Greater(t, flights, 1500.0)
	require.Less(t, work[len(work)/2], 16.0, "a frame at 60 a second")
}

func TestPhone(t *testing.T) {
	tab := open(t, look{width: 390, height: 844, still: true}, "#loss=5&t=2")
	require.LessOrEqual(t, eval[float64](t, tab, `document.documentElement.scrollWidth`), 390.0, "nothing is wider than the screen")
	until(t, tab, `diagrams[0].vertical === true`)
	small := eval[[]string](t, tab, `[...document.querySelectorAll("button")].filter(n => n.offsetParent && Math.min(n.offsetHeight, n.offsetWidth) < 24).map(n => n.outerHTML)`)
	require.Empty(t, small, "fingers need room")
	click(t, tab, "#settings-fold")
	until(t, tab, `!$("settings-body").hidden`)
	require.LessOrEqual(t, eval[float64](t, tab, `document.documentElement.scrollWidth`), 390.0)
}

// axe is the accessibility checker; npm fetches it.
func axe(t *testing.T) (script string, ok bool) {
	dir := t.TempDir()
	cmd := exec.Command("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, "axe-core@4.14.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("NOT TESTED: axe-core is not to be had: %v %s", err, out)
		return "", false
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(text), true
}

func TestAxeFindsNothingSerious(t *testing.T) {
	script, ok := axe(t)
	if !ok {
		return
	}
	looks := map[string]look{"light": {width: 1400, height: 900, still: true}, "dark": {width: 1400, height: 900, dark: true, still: true}, "phone": {width: 390, height: 844, still: true}}
	for name, l := range looks {
		for _, fragment := range []string{"#loss=10&t=3", "#loss=10&vs=none&sealed=1&t=3"} {
			tab := open(t, l, fragment)
			_, err := Eval[any](tab, script+"; 0")
			require.NoError(t, err)
			eval[any](t, tab, `select({ run: 0, kind: "flight", id: 120 }), $("listing").open = true, $("settings-body").hidden = false, 0`)
			found := eval[[]string](t, tab, `axe.run().then(r => r.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 4).map(n => n.html + " " + (n.any[0]?.message || "")).join(" | ")))`)
			require.Empty(t, found, "%s %s", name, fragment)
			tab.Close()
		}
	}
}

package browser

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// show opens a file that is not the playground in a look.
func show(t *testing.T, l look, file string) *Tab {
	path, err := filepath.Abs(file)
	require.NoError(t, err)
	tab, err := chromium.Tab()
	require.NoError(t, err)
	t.Cleanup(tab.Close)
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	_, err = chromedp.Call(tab.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(t, err)
	_, err = chromedp.Call(tab.Ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1})
	require.NoError(t, err)
	require.NoError(t, tab.Open("file://"+path))
	return tab
}

// judge returns what is wrong with the charts of a page, what a browser makes of them:
// each has words, its letters are large enough, and stand out from the ground.
const judge = `(() => {
	const light = c => c.match(/\d+/g).slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const bad = [];
	for (const svg of document.querySelectorAll('svg[role="img"]')) {
		const ground = light(getComputedStyle(svg.querySelector("rect")).fill), scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
		if (!svg.querySelector("title").textContent || !svg.querySelector("desc").textContent) bad.push("no words");
		for (const text of svg.querySelectorAll("text")) {
			const ink = light(getComputedStyle(text).fill), size = parseFloat(getComputedStyle(text).fontSize) * scale;
			if ((Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05) < 4.5) bad.push("faint: " + text.textContent);
			if (size < 9.5) bad.push(size + " px: " + text.textContent);
		}
	}
	return bad;
})()`

const groundIsDark = `getComputedStyle(document.querySelector('svg[role="img"] rect')).fill === "rgb(22, 27, 34)"`

func TestChartsOfTheDocuments(t *testing.T) {
	for _, file := range []string{"../../../docs/latency.svg", "../../../docs/transfer.svg", "../../../internal/bench/results/chart.svg"} {
		for _, dark := range []bool{false, true} {
			tab := show(t, look{width: 390, height: 844, dark: dark}, file)
			eval[any](t, tab, `document.documentElement.style.width = "390px", document.documentElement.style.height = "auto", 0`)
			require.Equal(t, dark, eval[bool](t, tab, groundIsDark), file)
			require.Empty(t, eval[[]string](t, tab, judge), file)
		}
	}
}

func TestReportOfTheLab(t *testing.T) {
	report := filepath.Join(t.TempDir(), "lab.html")
	for _, args := range [][]string{
		{"-seeds", "1", "-duration", "5s", "-policies", "adaptive+bundle,fixed,kcp", "-links", "10%,rate=100+queue=1s"},
		{"-seeds", "1", "-files"},
	} {
		out, err := exec.Command("go", append([]string{"-C", "../../lab", "run", ".", "-out", report}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		for _, l := range []look{{width: 390, height: 844}, {width: 390, height: 844, dark: true}, {width: 1400, height: 900}} {
			tab := show(t, l, report)
			require.Equal(t, l.dark, eval[bool](t, tab, groundIsDark))
			require.Empty(t, eval[[]string](t, tab, judge))
			require.LessOrEqual(t, eval[float64](t, tab, `document.documentElement.scrollWidth`), float64(l.width), "nothing is wider than the screen")
		}
	}
}

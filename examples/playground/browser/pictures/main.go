// Pictures takes the screenshots of the playground and of the lab's report that the
// documents show, of what is built now:
//
//	go -C examples/playground/browser run ./pictures
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/ackbits/ackbits/examples/playground/browser"
)

// shot is a picture: of what, and how.
type shot struct {
	name          string
	width, height int64
	dark, phone   bool
	address       string // within the playground; empty: the lab's report
	prepare       string // a script, run before
}

// look stops the game at a moment and selects a datagram with something to read.
const look = `(() => {
	pause();
	const d = diagrams[0]; d.draw();
	const f = d.flights.find(f => f.from === 0 && f.events && !f.lost && f.arrives < state.now - 25);
	if (f) select({ run: 0, kind: "flight", id: f.id });
	window.scrollTo(0, 0);
})()`

var shots = []shot{
	{"playground", 1440, 900, false, false, "#seed=7&loss=8&jitter=8&dup=2&t=6.42", look},
	{"playground-dark", 1440, 900, true, false, "#seed=7&loss=8&jitter=8&dup=2&t=6.42", look},
	{"playground-phone", 390, 844, false, true, "#seed=7&loss=8&jitter=8&dup=2&t=6.42", look},
	{"playground-compare", 1440, 1250, false, false, "#seed=3&loss=10&sevents=20&vs=none&t=12.5", `pause()`},
	{"lab", 1300, 1000, false, false, "", ""},
	{"lab-dark", 1300, 1000, true, false, "", ""},
	{"lab-phone", 390, 844, false, true, "", toCharts},
}

// toCharts scrolls the report to its first charts.
const toCharts = `document.querySelector(".grid").scrollIntoView(); window.scrollBy(0, -100)`

func main() {
	dir := flag.String("dir", "../../../docs", "the `folder` for the pictures")
	flag.StringVar(&format, "format", "webp", "webp, jpeg or png")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	temp, err := os.MkdirTemp("", "playground")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	address, err := browser.WritePage(temp)
	if err != nil {
		return err
	}
	lab, err := filepath.Abs("../../lab/lab.html") // which git ignores
	if err != nil {
		return err
	}
	if out, err := exec.Command("go", "-C", "../../lab", "run", ".").CombinedOutput(); err != nil {
		return fmt.Errorf("the lab: %w\n%s", err, out)
	}
	b, err := browser.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	for _, s := range shots {
		of, load := address+s.address, (*browser.Tab).Load
		if s.address == "" {
			of, load = "file://"+lab, (*browser.Tab).Open
		}
		picture, err := s.take(b, of, load)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		file := filepath.Join(dir, s.name+"."+format)
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d KiB\n", file, len(picture)/1024)
	}
	return nil
}

func (s shot) take(b *browser.Browser, address string, load func(t *browser.Tab, address string) error) ([]byte, error) {
	t, err := b.Tab()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	scheme, scale := "light", 1.0
	if s.dark {
		scheme = "dark"
	}
	if s.phone {
		scale = 2
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(t.Ctx, emulation.SetEmulatedMedia, media); err != nil {
		return nil, err
	}
	size := emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: scale, Mobile: s.phone}
	if _, err := chromedp.Call(t.Ctx, emulation.SetDeviceMetricsOverride, size); err != nil {
		return nil, err
	}
	if err := load(t, address); err != nil {
		return nil, err
	}
	// A promise resolves when what was prepared has been drawn.
	if _, err := browser.Eval[bool](t, "new Promise(done => { "+s.prepare+"; setTimeout(() => done(true), 400); })"); err != nil {
		return nil, err
	}
	picture, err := chromedp.Call(t.Ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormat(format), Quality: &quality})
	return picture.Data, err
}

var (
	format  string
	quality int64 = 88 // letters still have no halos
)

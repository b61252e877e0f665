// Package browser drives the playground's page in a real Chromium: its tests live
// here, apart from the library's module, and so does what makes the pictures of
// the README.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/ackbits/ackbits/examples/playground/page"
)

// ErrNoBrowser is the error where no Chromium is installed.
var ErrNoBrowser = errors.New("no chromium here: apt-get install chromium, or name one in CHROMIUM")

// Find returns the Chromium to use.
func Find() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoBrowser
}

// Browser is a Chromium with a profile of its own.
type Browser struct {
	ctx  context.Context
	stop []func()
}

// Open starts a Chromium.
func Open() (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "playground-profile")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopTab := chromedp.NewContext(alloc)
	b := &Browser{ctx: ctx, stop: []func(){stopTab, stopAlloc, func() { os.RemoveAll(profile) }}}
	if err := chromedp.Do(ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return b, nil
}

// Close ends the Chromium and removes its profile.
func (b *Browser) Close() {
	for _, stop := range b.stop {
		stop()
	}
}

// Tab is a page that notes what it writes to the console, which should be nothing,
// and what it asks the network for.
type Tab struct {
	Ctx   context.Context
	Close func()

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// Tab opens a tab.
func (b *Browser) Tab() (*Tab, error) {
	t := new(Tab)
	ctx, stop := chromedp.NewContext(b.ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Ctx, t.Close = ctx, func() { cancel(); stop() }
	console := chromedp.Console(ctx)
	go func() {
		for message, err := range console {
			if err != nil {
				return
			}
			t.note(&t.complaints, message.Text)
		}
	}()
	err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			t.note(&t.requests, e.Request.URL)
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tab) note(list *[]string, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*list = append(*list, text)
}

// Complaints returns what is in the console so far.
func (t *Tab) Complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.complaints...)
}

// Requests returns the addresses that the page asked for so far.
func (t *Tab) Requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.requests...)
}

// Do does things in the tab.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(t.Ctx, actions...)
}

// started waits until the page plays, or says that it cannot.
const started = `new Promise(done => {
	const look = () => !document.getElementById("main").hidden ? done("") : document.getElementById("trouble").textContent ? done(document.getElementById("trouble").textContent) : setTimeout(look, 10);
	look();
})`

// Open opens an address.
func (t *Tab) Open(address string) error {
	return t.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
}

// Load opens an address of the playground and waits until the page plays.
func (t *Tab) Load(address string) error {
	if err := t.Open(address); err != nil {
		return err
	}
	said, err := Eval[string](t, started)
	if err == nil && said != "" {
		err = errors.New(said)
	}
	return err
}

// Eval returns what an expression comes to.
func Eval[T any](t *Tab, expression string) (T, error) {
	return chromedp.Run(t.Ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// WritePage builds the page into a folder and returns the file's address.
func WritePage(dir string) (address string, err error) {
	html, err := page.Build()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "playground.html")
	if err := os.WriteFile(file, html, 0o644); err != nil {
		return "", err
	}
	return "file://" + file, nil
}

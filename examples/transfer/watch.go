package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// watch draws how far the file is, until the peer is over or ctx is done.
func watch(ctx context.Context, out io.Writer, p *peer, size int64) {
	draw := drawLines(out)
	every := 2 * time.Second
	if terminal(out) {
		var end func()
		draw, end = drawBar(out, p, size)
		defer end()
		every = 100 * time.Millisecond
	}
	redraw := time.NewTicker(every)
	defer redraw.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-redraw.C:
			draw(p.result(), p.recent())
		case <-look.C:
			if p.over() {
				draw(p.result(), p.recent())
				return
			}
		}
	}
}

const (
	smoothing = 10        // of rate and ETA, in redraws
	settled   = 256 << 10 // bytes after which a rate is worth showing
)

// drawBar returns a function that moves a bar.
func drawBar(out io.Writer, p *peer, size int64) (draw func(result, time.Duration), end func()) {
	progress := mpb.New(mpb.WithOutput(out), mpb.WithWidth(40))
	bar := progress.AddBar(size,
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(
			decor.EwmaSpeed(decor.SizeB1024(0), "% .2f", smoothing),
			decor.Name("  ETA "), decor.EwmaETA(decor.ET_STYLE_MMSS, smoothing),
			decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf("  states p99 %.1f ms", p.recent().Seconds()*1e3)
			}),
		))
	last, resumed := time.Now(), false
	draw = func(r result, _ time.Duration) {
		if r.got < settled && r.done < r.size {
			last = time.Now()
			return
		}
		if !resumed {
			resumed = true
			bar.SetCurrent(r.done)
			bar.SetRefill(r.had)
			last = time.Now()
			return
		}
		now := time.Now()
		bar.EwmaSetCurrent(r.done, now.Sub(last))
		last = now
	}
	return draw, func() {
		if !bar.Completed() {
			bar.Abort(false)
		}
		progress.Wait()
	}
}

// drawLines returns a function that writes a line, for what is no terminal.
func drawLines(out io.Writer) func(result, time.Duration) {
	return func(r result, p99 time.Duration) {
		if r.size == 0 || r.began.IsZero() {
			return
		}
		end := time.Now()
		if !r.ended.IsZero() {
			end = r.ended
		}
		rate := float64(r.got) / max(end.Sub(r.began).Seconds(), 1e-3)
		line := fmt.Sprintf("%5.1f %%  %.2f MiB/s  states p99 %.1f ms", 100*float64(r.done)/float64(r.size), rate/(1<<20), p99.Seconds()*1e3)
		if left := r.size - r.done; left > 0 && rate > 0 {
			line += fmt.Sprintf("  %.0f s to go", float64(left)/rate)
		}
		fmt.Fprintln(out, line)
	}
}

// terminal reports whether out is one.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

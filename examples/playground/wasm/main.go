//go:build js && wasm

// The playground's part in WebAssembly: the functions that the page calls. All
// they do is pass on what package view says.
package main

import (
	"math"
	"syscall/js"
	"time"

	"github.com/ackbits/ackbits/examples/playground/sim"
	"github.com/ackbits/ackbits/examples/playground/view"
)

var (
	board   *view.Board
	flights []byte // reused from frame to frame
)

func main() {
	js.Global().Set("ackbits", js.ValueOf(map[string]any{
		"describe": text(func([]js.Value) []byte { return view.Describe() }),
		"types":    text(func([]js.Value) []byte { return view.TypeNames() }),
		"parse":    text(func(a []js.Value) []byte { return view.Parse(a[0].String()) }),
		"report":   text(report),

		"start":   call(start),
		"advance": call(func(a []js.Value) any { board.Advance(duration(a[0])); return now() }),
		"scenes":  text(func([]js.Value) []byte { return view.DescribeScenes() }),
		"shoot":   text(func(a []js.Value) []byte { return view.Shoot(a[0].String()) }),
		"step":    call(func(a []js.Value) any { board.Step(a[0].Int(), a[1].Bool()); return now() }),
		"act":     call(act),
		"flights": call(copyFlights),
		"find": call(func(a []js.Value) any {
			return board.Find(a[0].Int(), sim.Side(a[1].Int()), uint16(a[2].Int()))
		}),

		"address":   text(func([]js.Value) []byte { return []byte(board.Address()) }),
		"status":    text(func(a []js.Value) []byte { return board.Status(a[0].Int()) }),
		"samples":   text(func(a []js.Value) []byte { return board.Samples(a[0].Int(), duration(a[1])) }),
		"latencies": text(func(a []js.Value) []byte { return board.Latencies(a[0].Int(), duration(a[1]), a[2].Int()) }),
		"flight":    text(func(a []js.Value) []byte { return board.Flight(a[0].Int(), a[1].Int()) }),
		"event": text(func(a []js.Value) []byte {
			return board.Event(a[0].Int(), sim.Side(a[1].Int()), a[2].Int())
		}),
	}))
	js.Global().Call("playgroundReady")
	select {} // the functions go on being called
}

func call(f func(args []js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
}

func text(f func(args []js.Value) []byte) js.Func {
	return call(func(args []js.Value) any { return string(f(args)) })
}

// duration reads a time in milliseconds, to the microsecond.
func duration(v js.Value) time.Duration {
	return time.Duration(math.Round(v.Float()*1000)) * time.Microsecond
}

func now() any { return float64(board.Now()) / float64(time.Millisecond) }

// start begins anew with the settings of an address, and returns what was wrong
// with it; then the board is as it was.
func start(a []js.Value) any {
	s, err := sim.Parse(a[0].String())
	if err != nil {
		return err.Error()
	}
	b, err := view.Start(s)
	if err != nil {
		return err.Error()
	}
	board = b
	return ""
}

// act lets something happen, and returns what was wrong with it.
func act(a []js.Value) any {
	if err := board.Do(a[0].String(), a[1].Int()); err != nil {
		return err.Error()
	}
	return ""
}

// copyFlights writes the flights of a run between two times into an array, as
// many as fit, and returns how many.
func copyFlights(a []js.Value) any {
	into := a[3]
	room := into.Length() / view.FlightSize
	flights = board.Flights(flights[:0], a[0].Int(), duration(a[1]), duration(a[2]), room)
	js.CopyBytesToJS(into, flights)
	return len(flights) / view.FlightSize
}

// report plays settings apart from the board and returns the figures.
func report(a []js.Value) []byte {
	s, err := sim.Parse(a[0].String())
	if err != nil {
		return []byte(err.Error())
	}
	out, err := sim.Report(s, duration(a[1]))
	if err != nil {
		return []byte(err.Error())
	}
	return []byte(out)
}

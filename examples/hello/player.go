package main

import (
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// What the game is: dots on a line of 40 places, and who sits at a terminal.

const (
	tick    = time.Second / 20
	width   = 40
	maxLine = 1000 // bytes that somebody says at once: an event holds that and a name
)

// player is somebody at this terminal.
type player struct {
	name   string
	lines  <-chan string // what was typed
	screen *screen
	place  byte // of the dot
	back   bool // it moves to the left

	seen time.Time // when the dots were last seen; zero before
	late bool      // that is long ago, and we said so
}

// hear shows a line of the chat.
func (p *player) hear(line string) { p.screen.say(line) }

// see shows where the dots are: two bytes each, the first letter of a name and a
// place.
func (p *player) see(dots []byte) {
	p.seen = time.Now()
	if p.late {
		p.late = false
		p.screen.say("(the server answers again)")
	}
	p.screen.draw(dots)
}

// typed returns the next line that was typed, "" if there is none. An empty line
// turns the dot around.
func (p *player) typed() string {
	select {
	case line := <-p.lines:
		p.screen.clearTyped()
		if len(line) > maxLine {
			line = line[:maxLine]
			p.screen.say(fmt.Sprintf("(a line is cut to %d bytes)", maxLine))
		}
		if line == "" {
			p.back = !p.back
		}
		return line
	default:
		return ""
	}
}

// move moves the dot by one place.
func (p *player) move() {
	switch {
	case p.place == 0:
		p.back = false
	case p.place == width-1:
		p.back = true
	}
	if p.back {
		p.place--
	} else {
		p.place++
	}
	if !p.seen.IsZero() && !p.late && time.Since(p.seen) > time.Second {
		p.late = true
		p.screen.say("(nothing has come from the server for a second)")
	}
}

// play is a turn of the game at the server. It returns the dots of all, as see takes
// them.
func (p *player) play(peers iter.Seq[*endpoint.Peer]) []byte {
	p.move()
	dots := []byte{letter(p.name), p.place}
	for peer := range peers {
		if place, ok := peer.Value.(byte); ok { // else nothing of it has arrived yet
			dots = append(dots, letter(nameOf(peer)), place)
		}
	}
	p.see(dots)
	return dots
}

// anybody reports whether there are any peers.
func anybody(peers iter.Seq[*endpoint.Peer]) bool {
	for range peers {
		return true
	}
	return false
}

// said returns a line of the chat. The text may come from anybody: it is cut so that
// an event holds the line.
func said(name, text string) string { return name + ": " + text[:min(len(text), maxLine)] }

// news tells what happened to a peer.
func news(e endpoint.Event) string {
	name := nameOf(e.Peer)
	switch {
	case e.Kind == endpoint.Joined:
		return name + " has joined"
	case e.Kind == endpoint.Moved:
		return name + " plays on from another address"
	case errors.Is(e.Err, ackbits.ErrPeerLeft), errors.Is(e.Err, ackbits.ErrClosed):
		return name + " has left"
	}
	return fmt.Sprintf("%s is gone: %v", name, e.Err)
}

// nameOf returns what a peer calls itself, cut to a length that fits the screen.
func nameOf(peer *endpoint.Peer) string { return shorten(string(peer.Hello())) }

func shorten(name string) string {
	const most = 16
	runes := []rune(printable(name))
	if len(runes) == 0 {
		return "somebody"
	}
	return string(runes[:min(len(runes), most)])
}

// letter returns the first letter of a name, if one byte can hold it.
func letter(name string) byte {
	if r, _ := utf8.DecodeRuneInString(name); r > ' ' && r < 0x7f {
		return byte(r)
	}
	return '*'
}

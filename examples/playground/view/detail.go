package view

import (
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/ackbits/ackbits/examples/playground/sim"
	"github.com/ackbits/ackbits/simnet"
)

// FlightDetail is all about a datagram.
type FlightDetail struct {
	ID           int
	From         sim.Side
	Type         string
	Sequence     int
	Sent         float64
	Outcome      string
	Arrives      []float64
	Got          []string
	Acked        float64
	Size         int
	Sealed       bool
	Header       []sim.Part
	Payload      []sim.Part
	Hex          string // all of it, as sent
	Plain        string // the payload, as the sender and the receiver know it
	Events       []int  // numbers
	Acknowledged []int  // the flights that it acknowledges
	Missing      []int  // the sequences that it could acknowledge and does not, the newest first
}

// Flight tells all about a datagram; null if it is forgotten.
func (b *Board) Flight(i, id int) []byte {
	r := b.runs[i]
	f, ok := r.Flight(id)
	if !ok {
		return []byte("null")
	}
	d := FlightDetail{ID: f.ID, From: f.From, Type: typeOf(f), Sequence: int(f.Header.Sequence), Sent: ms(f.SentAt), Outcome: outcome(r, f),
		Acked: ms(f.AckedAt), Size: len(f.Bytes), Sealed: f.Sealed(), Events: f.Events}
	for n := range f.Copies {
		d.Arrives = append(d.Arrives, ms(f.Arrives[n]))
		d.Got = append(d.Got, f.Got[n].String())
	}
	d.Header, _, _, _ = sim.DecodeHeader(f.Bytes)
	d.Payload, _ = sim.DecodePayload(f.Header.Type, f.Plain)
	d.Hex, d.Plain = hex.EncodeToString(f.Bytes), hex.EncodeToString(f.Plain)
	d.acknowledges(r, f)
	return encode(d)
}

// acknowledges looks up which flights the acknowledgements of a datagram mean.
func (d *FlightDetail) acknowledges(r *sim.Run, f *sim.Flight) {
	h := f.Header
	n := 32
	if h.Wide {
		n = 64
	}
	if h.Ack == 65535 && h.AckBits == 0 {
		return // nothing received yet
	}
	for i := range n + 1 {
		seq := h.Ack - uint16(i)
		g, ok := r.FindBefore(f.From.Other(), seq, f.SentAt)
		switch {
		case !ok:
		case i == 0 || h.AckBits>>(i-1)&1 != 0:
			d.Acknowledged = append(d.Acknowledged, g.ID)
		default:
			d.Missing = append(d.Missing, int(seq))
		}
	}
}

// Moment is a moment in the life of an event.
type Moment struct {
	At     float64
	Text   string
	Flight int // the datagram it is about, or -1
}

// EventDetail is all about an event.
type EventDetail struct {
	Event
	Life []Moment
}

// Event tells the life of an event; null if it is forgotten.
func (b *Board) Event(i int, from sim.Side, number int) []byte {
	r := b.runs[i]
	e, ok := r.Event(from, number)
	if !ok {
		return []byte("null")
	}
	return encode(EventDetail{eventOf(r, e), life(r, e)})
}

func life(r *sim.Run, e *sim.Event) (moments []Moment) {
	now := r.Now()
	note := func(at time.Duration, flight int, text string) {
		if at >= 0 && at <= now {
			moments = append(moments, Moment{ms(at), text, flight})
		}
	}
	note(e.SentAt, -1, "The "+e.From.String()+" hands it to Send.")
	for n, id := range e.Copies {
		f, ok := r.Flight(id)
		if !ok {
			continue
		}
		name := "Copy " + strconv.Itoa(n+1)
		note(f.SentAt, id, name+" leaves in "+typeOf(f)+" "+strconv.Itoa(int(f.Header.Sequence))+".")
		if f.Copies == 0 {
			note(f.SentAt+r.OneWay()/2, id, name+" is "+lossText(f.Outcome)+".")
		}
		for c := range f.Copies {
			text := name + " arrives."
			if f.Arrives[c] > e.FirstIn {
				text = name + " arrives, for nothing."
			}
			note(f.Arrives[c], id, text)
		}
	}
	if e.DeliveredAt >= 0 {
		text := "The " + e.From.Other().String() + " gets it, " + sim.Milliseconds(e.DeliveredAt-e.SentAt) + " after Send."
		if e.DeliveredAt > e.FirstIn {
			text = "The gap before it has closed: the " + e.From.Other().String() + " gets it, " + sim.Milliseconds(e.DeliveredAt-e.SentAt) + " after Send."
		}
		note(e.DeliveredAt, -1, text)
	}
	note(e.AckedAt, -1, "The "+e.From.String()+" learns of it from an acknowledgement.")
	slices.SortStableFunc(moments, func(a, b Moment) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return moments
}

func lossText(what simnet.What) string {
	switch what {
	case simnet.LostInBurst:
		return "lost in a burst"
	case simnet.LostInBlackout:
		return "lost in an outage"
	case simnet.LostInQueue:
		return "dropped: the queue is full"
	}
	return "lost"
}

package sim

import (
	"strconv"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// peer is one side: a session and the game that it plays. It is a
// simnet.Endpoint.
type peer struct {
	*ackbits.Session
	run  *Run
	side Side
	stop func() // the ticks
	out  []byte

	eventsFrom time.Duration // events are counted from here
	eventsDue  int           // those since then that were sent
	ended      time.Duration // when the session was first seen to have ended; never

	received    ackbits.AckTracker // what the headers of this side say
	hasReceived bool
	closing     bool
}

// startTicks starts a side's game loop, or gives it another rate.
func (r *Run) startTicks(side Side) {
	p := &r.peers[side]
	rate := [...]Field{ClientTicks, ServerTicks}[side]
	if p.stop != nil {
		p.stop()
	}
	p.countEventsFrom(r.Now())
	first := true
	p.stop = r.pair.Every(r.settings.Values[rate], time.Second, func() {
		if first && r.Now() > 0 {
			first = false // or each change of the rate would add a tick
			return
		}
		first = false
		p.tick()
	})
}

// tick is a turn of a side's game loop: what happened since the last, then the
// state as it is now.
func (p *peer) tick() {
	r := p.run
	r.ticked++
	if p.Err() != nil || p.closing {
		return
	}
	v := &r.settings.Values
	events := v[[...]Field{ClientEvents, ServerEvents}[p.side]]
	due := int(int64(r.Now()-p.eventsFrom) * int64(events) / int64(time.Second))
	for ; p.eventsDue < due; p.eventsDue++ {
		p.sendEvent()
	}
	kind, size := ackbits.TypeInput, v[ClientState]
	if p.side == Server {
		kind, size = ackbits.TypeSnapshot, v[ServerState]
	}
	size = min(size, p.MaxPayload())
	datagram, _, err := p.AppendDatagram(p.out[:0], kind, p.state(size))
	if err == nil {
		r.pair.Send(simnet.Direction(p.side), datagram)
	}
	p.out = datagram
}

func (p *peer) countEventsFrom(now time.Duration) { p.eventsFrom, p.eventsDue = now, 0 }

// sendEvent sends the side's next event, unless too many wait.
func (p *peer) sendEvent() {
	r := p.run
	if p.closing || p.Room() == 0 {
		r.refused++
		return
	}
	n := r.sent[p.side]
	line := "#" + strconv.Itoa(n) + [...]string{" fire at ", " hit by "}[p.side] + strconv.Itoa(n*7%100) + "," + strconv.Itoa(n*13%100)
	data := fill(line, min(r.settings.Values[EventSize], p.MaxEvent()))
	if _, err := p.Send(data); err != nil {
		r.refused++
		return
	}
	r.addEvent(p.side, len(data), r.Now())
}

// state is what a side sends each tick: something to read in its bytes.
func (p *peer) state(size int) []byte {
	ms := int(p.run.Now() / time.Millisecond)
	if p.side == Client {
		return fill("t="+strconv.Itoa(ms)+" move="+strconv.Itoa(ms/100%8), size)
	}
	return fill("t="+strconv.Itoa(ms)+" p1="+strconv.Itoa(ms*3%997)+","+strconv.Itoa(ms*7%991)+" p2="+strconv.Itoa(ms*5%983), size)
}

// fill cuts a line to a size, or fills it up with dots.
func fill(line string, size int) []byte {
	b := make([]byte, size)
	for i := copy(b, line); i < size; i++ {
		b[i] = '.'
	}
	return b
}

// leave closes a side's session.
func (p *peer) leave() {
	p.closing = true
	p.Close()
}

// Receive is a simnet.Endpoint's.
func (p *peer) Receive(datagram []byte) {
	r := p.run
	f, copy := r.arriving, r.arrivingCopy
	incoming, err := p.Session.Receive(datagram)
	p.noteEnd()
	if err != nil {
		f.Got[copy] = GotRefused
		return
	}
	f.Got[copy] = Arrival(incoming.Arrival)
	if incoming.Arrival == ackbits.Newest || incoming.Arrival == ackbits.Late {
		p.received.Receive(incoming.Sequence)
		p.hasReceived = true
	}
	r.acknowledge(p.side, incoming.Header, r.Now())
	for _, event := range incoming.Events {
		r.deliver(p.side.Other(), event.ID)
	}
}

// Due is a simnet.Endpoint's.
func (p *peer) Due(send func([]byte)) {
	for {
		datagram, ok := p.AppendDue(p.out[:0])
		p.out = datagram
		if !ok {
			break
		}
		send(datagram)
	}
	p.noteEnd()
}

func (p *peer) noteEnd() {
	if p.ended == never && p.Err() != nil {
		p.ended = p.run.Now()
		p.run.happened++
	}
}

package ackbits

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Half the number space: 32,767 datagrams may follow the newest one that was
// acknowledged; the next ends the session, whatever it would be.
// P-3.1.4.
func TestHalfTheNumbersEndASession(t *testing.T) {
	for name, next := range map[string]func(p *actor){
		"AppendDatagram": func(p *actor) { p.emitFails(ErrStalled) },
		"event":          func(p *actor) { p.send("x"); p.wantNothing() },
		"heartbeat":      func(p *actor) { p.sleep(50 * ms); p.wantNothing() },
	} {
		for _, acked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " acknowledged before: ", acked), func(t *testing.T) {
				p := solo(t, Config{StallTimeout: -1})
				if acked {
					k := p.emit(TypeInput)
					drop(k)
					p.ack(k.Sequence, 0)
				}
				fill(p, 1<<15-1)
				p.wantAlive()
				next(p)
				p.wantErr(ErrStalled)
			})
		}
	}
	t.Run("leaving", func(t *testing.T) {
		p := solo(t, Config{})
		fill(p, 1<<15-3)
		p.s.Close()
		require.Len(t, p.flush(), 2, "Disconnects")
		p.wantErr(ErrClosed)
	})
	t.Run("an acknowledgement makes room", func(t *testing.T) {
		p := solo(t, Config{})
		fill(p, 1<<15-1)
		p.ack(9, 0)
		fill(p, 10)
		p.emitFails(ErrStalled)
	})
	t.Run("channel", func(t *testing.T) {
		c, err := NewReliableChannel(Config{Clock: &ManualClock{}})
		require.NoError(t, err)
		for range 1<<15 - 1 {
			_, ok := c.NextHeader(TypeInput)
			require.True(t, ok)
		}
		h, ok := c.NextHeader(TypeInput)
		require.False(t, ok)
		require.Zero(t, h)
		require.Equal(t, ErrStalled, c.Err())
		require.EqualValues(t, 1<<15-1, c.Stats().DatagramsSent)
	})
}

func fill(p *actor, n int) {
	p.tb.Helper()
	for range n {
		_, _, err := p.s.AppendDatagram(nil, TypeInput, nil)
		require.NoError(p.tb, err)
	}
}

// Why: with one more turn of the numbers, the acknowledgement of a datagram that
// arrived would name one that did not, and its event would count as delivered.
func TestOldAcknowledgementNamesNothingOfATurnLater(t *testing.T) {
	a, b := duo(t, Config{StallTimeout: -1})
	a.tracked, b.tracked = false, false
	b.deliver(a.emit(TypeInput))
	old := b.emit(TypeInput) // acknowledges 0
	a.deliver(old)
	sent := 0
	for a.s.Err() == nil && sent < 1<<16 {
		if sent == 1<<16-2 {
			a.send("never arrives")
		}
		a.s.AppendDatagram(nil, TypeInput, nil)
		sent++
	}
	a.wantErr(ErrStalled)
	require.Equal(t, 1<<15, sent)
}

// MaxDatagram bounds what is sent, whatever it is, and not what is received.
// P-6.5.1.
func TestMaxDatagram(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, sealed := range []bool{false, true} {
			for _, size := range []int{128, 129, 576, 1200} {
				cfg := Config{Wide: wide, MaxDatagram: size, Bundle: true}
				if sealed {
					cfg.Seal, cfg.Open = gcm(1), gcm(1)
				}
				p := solo(t, cfg)
				require.Equal(t, p.s.MaxPayload()-5, p.s.MaxEvent())
				longest := 0
				note := func(datagram []byte) {
					require.LessOrEqual(t, len(datagram), size)
					longest = max(longest, len(datagram))
				}
				for n := range 200 {
					_, err := p.s.Send(make([]byte, n*p.s.MaxEvent()/199))
					require.NoError(t, err)
				}
				_, err := p.s.Send(make([]byte, p.s.MaxEvent()+1))
				require.ErrorIs(t, err, ErrEventTooLarge)
				for n := range p.s.MaxPayload() + 1 {
					out, _, err := p.s.AppendDatagram(nil, TypeInput, make([]byte, n))
					require.NoError(t, err)
					note(out)
				}
				require.Equal(t, size, longest)
				_, _, err = p.s.AppendDatagram(nil, TypeInput, make([]byte, p.s.MaxPayload()+1))
				require.ErrorIs(t, err, ErrDatagramTooLarge)
				longest = 0
				p.sleep(time.Second)
				for out := range p.s.Due(make([]byte, size)) {
					note(out)
				}
				require.Equal(t, size, longest, "the largest event fits exactly")
			}
		}
	}
	for _, size := range []int{-1, 1, 127, 1201, math.MaxInt} {
		_, err := NewSession(Config{MaxDatagram: size})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, "MaxDatagram")
		_, err = NewReliableChannel(Config{MaxDatagram: size})
		require.NoError(t, err, "it has no bytes")
	}
	p := solo(t, Config{MaxDatagram: 128})
	p.hear(TypeInput, make([]byte, MaxDatagramSize-HeaderSize)...)
}

// Connect and Accept never carry events: a server looks for a Connect from a
// stranger. They are valid when received as bundles all the same.
// P-10.1.6.
func TestConnectAndAcceptAreNotBundled(t *testing.T) {
	p := solo(t, Config{Bundle: true})
	p.send("event")
	for _, ty := range []Type{TypeConnect, TypeAccept} {
		drop(p.emit(ty, 1, 2))
	}
	out, _, err := p.s.AppendDatagram(nil, TypeInput, nil)
	require.NoError(t, err)
	require.EqualValues(t, TypeBundle, out[1])
	require.Equal(t, TypeConnect, p.hear(TypeBundle, append([]byte{1}, eventList(Event{0, nil})...)...).Type)
	p.events = nil
}

// No time is too long for Deadline: what is never due does not come at once.
func TestDeadlineSaturates(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	at := func(p *actor) time.Duration { p.tb.Helper(); return p.deadline() }
	p := solo(t, Config{Timeout: forever, Heartbeat: time.Hour, ResendDelay: time.Minute})
	p.sleep(time.Minute)
	drop(p.emit(TypeInput)) // the heartbeat is an hour after it
	p.hear(TypeHeartbeat)   // and the timeout beyond the end of time
	p.wantDeadline(61 * time.Minute)
	p = solo(t, Config{Timeout: forever, Heartbeat: forever - 1})
	p.sleep(time.Minute)
	drop(p.emit(TypeInput))
	p.hear(TypeHeartbeat)
	require.Greater(t, at(p), time.Duration(0))
	p.send("x")
	drop(p.flush()...)
	p.wantDeadline(time.Minute + 100*ms)
	p = solo(t, Config{Timeout: forever, Heartbeat: forever - 1, ResendDelay: forever, StallTimeout: forever})
	p.sleep(time.Minute)
	p.send("x")
	drop(p.flush()...)
	p.hear(TypeHeartbeat)
	require.Greater(t, at(p), time.Minute, "retransmission, stall, timeout, heartbeat")
	p.wantNothing()
	p.sleep(20 * time.Hour)
	p.wantNothing()
	p.wantAlive()
}

// Stats.Add forgets no field.
func TestStatsAdd(t *testing.T) {
	var a, b Stats
	for i, v := range []reflect.Value{reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()} {
		for f := range v.NumField() {
			n := uint64(1000*i + f*f + 1)
			if field := v.Field(f); field.CanUint() {
				field.SetUint(n)
			} else {
				field.SetInt(int64(n))
			}
		}
	}
	sum := a
	sum.Add(b)
	for f := range reflect.TypeOf(a).NumField() {
		name := reflect.TypeOf(a).Field(f).Name
		x, y, z := reflect.ValueOf(a).Field(f), reflect.ValueOf(b).Field(f), reflect.ValueOf(sum).Field(f)
		switch {
		case x.CanUint():
			require.Equal(t, x.Uint()+y.Uint(), z.Uint(), name)
		case x.Type() == reflect.TypeFor[time.Duration]():
			require.Equal(t, max(x.Int(), y.Int()), z.Int(), name)
		default:
			require.Equal(t, x.Int()+y.Int(), z.Int(), name)
		}
	}
	var none Stats
	none.Add(b)
	require.Equal(t, b, none)
	b.Add(Stats{})
	require.Equal(t, b, none, "the larger of the times")
}

package transfer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

const msec = millisecond

// fleet is a flight of one large file, with a round trip of 60 ms.
type fleet struct {
	flight
	file *Outgoing
	now  int64
}

func newFleet() *fleet {
	return &fleet{file: &Outgoing{transfer: transfer{offer: Offer{Size: 1 << 30}}, accepted: true}}
}

// send sends n chunks of a unit a millisecond apart; the last one asks.
func (f *fleet) send(n int) (serial int64) {
	for i := range n {
		r, _ := f.file.take(1)
		f.add(chunk{file: f.file, number: 10 * f.count, sentAt: f.now, unit: r.from, units: 1, size: 600, ask: i == n-1})
		f.now += msec
	}
	return f.count - 1
}

// hear acknowledges chunks, 60 ms after the last of them was sent.
func (f *fleet) hear(serials ...int64) {
	last := f.chunks.At(serials[len(serials)-1])
	f.now = max(f.now, last.sentAt+60*msec)
	for _, k := range serials {
		c := f.byNumber(10 * k)
		f.outcome(c, ackbits.Outcome{Delivered: true, RTT: time.Duration(f.now - c.sentAt)}, f.now)
	}
}

func TestOvertakenChunksAreLostAfterTheTolerance(t *testing.T) {
	f := newFleet()
	f.send(10)
	f.hear(0, 1, 2, 4, 5, 7, 8, 9)
	// Serial 3 was to be acknowledged 6 ms before 9, and has an eighth of 60 ms.
	at, ok := f.lostAt()
	require.True(t, ok)
	require.EqualValues(t, 69*msec-6*msec+60*msec/8, at)
	f.detect(at - 1)
	require.Empty(t, f.file.again)
	f.detect(at)
	require.Equal(t, []run{{3, 4}}, f.file.again)
	at, ok = f.lostAt()
	require.True(t, ok)
	require.EqualValues(t, 69*msec-3*msec+60*msec/8, at, "6 is next")
	f.detect(at)
	require.Equal(t, []run{{3, 4}, {6, 7}}, f.file.again)
	_, ok = f.lostAt()
	require.False(t, ok, "nothing is flying")
	require.Zero(t, f.flying)
	require.EqualValues(t, 8*600, f.got)
	require.EqualValues(t, 2*600, f.gone)
	lost, n := f.missing(0, 9)
	require.EqualValues(t, 2, lost)
	require.EqualValues(t, 9, n)
	lost, n = f.missing(3, 9)
	require.EqualValues(t, 1, lost, "from behind the first")
	require.EqualValues(t, 6, n)
}

// A chunk that was taken for lost is remembered, in case that it arrives after all.
func TestLostChunksAreRememberedForAWhile(t *testing.T) {
	f := newFleet()
	f.send(3)
	f.hear(1, 2)
	at, _ := f.lostAt()
	f.detect(at)
	patience := f.patience()
	for _, now := range []int64{4 * patience, 4*patience + 1} {
		require.NotNil(t, f.byNumber(0))
		f.send(2)
		f.outcome(f.byNumber(10*f.count-20), ackbits.Outcome{Delivered: true}, now) // no answer: no sample
	}
	require.Nil(t, f.byNumber(0))
	require.EqualValues(t, 4, f.first, "the one that is flying")
}

func TestPatienceBeforeAnyAnswer(t *testing.T) {
	f := newFleet()
	require.Equal(t, firstPatience, f.patience())
	f.send(3)
	at, ok := f.lostAt()
	require.True(t, ok)
	require.Equal(t, 2*msec+firstPatience, at, "from the ask")
	f.file.take(1)
	f.add(chunk{file: f.file, number: 1000, sentAt: f.now, units: 1, size: 600})
	again, _ := f.lostAt()
	require.Equal(t, at, again, "one that does not ask is not waited for")
}

func TestASilenceLosesTheOldestAndDoubles(t *testing.T) {
	f := newFleet()
	f.send(4)
	f.hear(0, 1, 2, 3)
	patience := f.patience()
	require.Equal(t, 60*msec+4*30*msec, patience, "RFC 6298: the first sample varies by half")
	f.send(5)
	sentAt := f.chunks.At(f.count - 1).sentAt
	for i, tries := range []int64{1, 2, 4, 8, 12} { // the last at the limit
		at, ok := f.lostAt()
		require.True(t, ok)
		require.Equal(t, sentAt+min(tries*patience, maxPatience), at)
		f.detect(at - 1)
		require.Len(t, f.file.again, i)
		f.detect(at)
		require.Len(t, f.file.again, i+1, "one for each silence")
		sentAt = at
	}
	_, ok := f.lostAt()
	require.False(t, ok)

	// What arrives ends the silence.
	f.send(1)
	f.hear(f.count - 1)
	f.send(1)
	at, _ := f.lostAt()
	require.Equal(t, f.chunks.At(f.count-1).sentAt+f.patience(), at)
}

func TestAChunkThatWasTakenForLostTeachesTolerance(t *testing.T) {
	f := newFleet()
	f.send(10)
	f.hear(0, 1, 2, 3, 4, 6, 7, 8, 9)
	at, _ := f.lostAt()
	f.detect(at)
	require.Equal(t, []run{{5, 6}}, f.file.again)
	done := f.file.done
	f.now = 105 * msec
	c := f.byNumber(50)
	f.outcome(c, ackbits.Outcome{Delivered: true}, f.now)
	require.EqualValues(t, 1, f.needless)
	require.Empty(t, f.file.again, "it need not be sent again")
	require.Equal(t, done+unit, f.file.done)
	require.EqualValues(t, (100*msec-60*msec)*5/4, f.tolerance, "as late as it was, and some")
	f.send(10)
	f.hear(11, 19)
	require.EqualValues(t, 50*msec, f.tolerance, "which stays")
	for range 20 {
		f.tolerance *= 2
		f.send(1)
		f.hear(f.count - 1)
	}
	require.Equal(t, f.patience(), f.tolerance, "but for the silence, which comes first")
}

// What of a chunk was sent again already counts when the repeat arrives.
func TestProgressCountsOnce(t *testing.T) {
	f := newFleet()
	f.send(10)
	f.hear(1, 2, 3, 4, 5, 6, 7, 8, 9)
	at, _ := f.lostAt()
	f.detect(at)
	f.now = at
	f.send(1)
	require.Empty(t, f.file.again)
	require.EqualValues(t, 1, f.repeated())
	done := f.file.done
	f.outcome(f.byNumber(0), ackbits.Outcome{Delivered: true}, f.now)
	require.Equal(t, done, f.file.done)
	f.hear(10)
	require.Equal(t, done+unit, f.file.done)
}

// repeated is how many chunks of the file were taken from again.
func (f *fleet) repeated() int64 { return f.count - f.file.next }

func TestTheSessionsOwnOutcomeIsALoss(t *testing.T) {
	f := newFleet()
	f.send(3)
	f.outcome(f.byNumber(10), ackbits.Outcome{}, f.now)
	require.Equal(t, []run{{1, 2}}, f.file.again)
	require.EqualValues(t, 2*600, f.flying)
	f.outcome(f.byNumber(10), ackbits.Outcome{}, f.now)
	require.Len(t, f.file.again, 1)
}

func TestOnlyItsOwnNumbersAndSerials(t *testing.T) {
	f := newFleet()
	require.Nil(t, f.byNumber(0))
	c, _ := f.bySerial(0)
	require.Nil(t, c)
	f.send(100)
	for _, n := range []int64{-10, 5, 991, 1000} {
		require.Nil(t, f.byNumber(n))
	}
	for k := range int64(100) {
		require.Equal(t, k, f.byNumber(10*k).number/10)
		c, serial := f.bySerial(uint16(k))
		require.NotNil(t, c)
		require.Equal(t, k, serial)
	}
	for _, s := range []uint16{100, 101, 32768, 65535} {
		c, _ := f.bySerial(s)
		require.Nil(t, c)
	}
	f.hear(0, 1, 2)
	c, _ = f.bySerial(2)
	require.Nil(t, c, "forgotten")
	c, _ = f.bySerial(3)
	require.NotNil(t, c)
}

func TestAFlightIsBounded(t *testing.T) {
	f := newFleet()
	f.send(maxFlight)
	require.True(t, f.full())
	f.outcome(f.byNumber(10), ackbits.Outcome{Delivered: true}, f.now)
	require.True(t, f.full(), "the oldest is flying")
	f.outcome(f.byNumber(0), ackbits.Outcome{}, f.now)
	require.False(t, f.full(), "a lost one makes room")
	f.send(2)
	require.True(t, f.full())
	require.Len(t, f.chunks, maxFlight)
}

// What the receiver has is not sent, in whatever sizes.
func TestWhatTheReceiverHasIsSkipped(t *testing.T) {
	for most := int64(1); most <= largestChunk; most++ {
		o := &Outgoing{transfer: transfer{offer: Offer{Size: 20*unit - 100}}, accepted: true, skip: []run{{0, 1}, {4, 7}, {10, 12}, {19, 20}}}
		o.leap()
		var sent []int64
		for o.ready() {
			r, repeat := o.take(most)
			require.False(t, repeat)
			require.LessOrEqual(t, r.to-r.from, most)
			for u := r.from; u < r.to; u++ {
				sent = append(sent, u)
			}
		}
		require.Equal(t, []int64{1, 2, 3, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18}, sent)
		require.EqualValues(t, 7*unit-100, o.done)
	}
}

// A lost chunk of two units goes again in pieces where chunks became small.
func TestARepeatMayBeSmaller(t *testing.T) {
	o := &Outgoing{transfer: transfer{offer: Offer{Size: 20 * unit}}, accepted: true, next: 10, again: []run{{4, 6}, {1, 2}}}
	for _, want := range []run{{4, 5}, {5, 6}, {1, 2}} {
		r, repeat := o.take(1)
		require.Equal(t, want, r)
		require.True(t, repeat)
	}
	r, repeat := o.take(2)
	require.Equal(t, run{10, 12}, r)
	require.False(t, repeat)
}

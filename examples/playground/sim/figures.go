package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// tally counts what a run's figures are made of.
type tally struct {
	arriving     *Flight // what the receiver is about to get
	arrivingCopy int

	happened, ticked uint64 // datagrams sent or arrived and sessions ended; ticks

	longestFlight time.Duration
	forgotten     int // arrivals of flights that are not remembered

	datagrams, bytes, lost, queueLost, twice [2]int // by sender
	copies                                   int    // of events, by both sides
	delivered                                [2]int // events, by sender
	refused                                  int    // events for which there was no room

	latencies histogram
	recent    []time.Duration // since the last sample

	samples  []Sample
	sampleAt time.Duration

	digest uint64 // of all that happened on the links
}

// Sample is how things stood at a certain time. Counters are since the start.
type Sample struct {
	At                        time.Duration
	Datagrams, Lost, Bytes    [2]int // by sender
	Events, Delivered, Copies int
	P50, P99                  time.Duration    // of events delivered since the sample before; never, if there were none
	RTT, MinRTT, Queue        [2]time.Duration // as each side's Stats have them; MinRTT is 0 before the first sample
}

// sampleEvery is the grain of the charts. Finer ones show noise: at 20 events a
// second ten fall into each.
const sampleEvery = 500 * time.Millisecond

// maxSamples is half an hour of charts.
const maxSamples = 3600

func (r *Run) sample() {
	s := Sample{At: r.Now(), Datagrams: r.datagrams, Lost: r.lost, Bytes: r.bytes,
		Events: r.sent[0] + r.sent[1], Delivered: r.delivered[0] + r.delivered[1], Copies: r.copies, P50: never, P99: never}
	for side := Client; side <= Server; side++ {
		stats := r.peers[side].Stats()
		s.RTT[side], s.MinRTT[side], s.Queue[side] = stats.RTT, stats.MinRTT, stats.QueueDelay
	}
	if n := len(r.recent); n > 0 {
		slices.Sort(r.recent)
		s.P50, s.P99 = r.recent[(n-1)/2], r.recent[(n-1)*99/100]
		r.recent = r.recent[:0]
	}
	if len(r.samples) == maxSamples {
		r.samples = slices.Delete(r.samples, 0, maxSamples/4)
	}
	r.samples = append(r.samples, s)
	r.sampleAt = r.Now() + sampleEvery
}

// Samples returns the samples so far, the newest last.
func (r *Run) Samples() []Sample { return r.samples }

func (r *Run) noteSent(f *Flight) {
	r.datagrams[f.From]++
	r.bytes[f.From] += len(f.Bytes)
	if f.Copies > 0 {
		r.longestFlight = max(r.longestFlight, f.Arrives[f.Copies-1]-f.SentAt)
	}
	if f.Copies == 0 {
		r.lost[f.From]++
		if f.Outcome == simnet.LostInQueue {
			r.queueLost[f.From]++
		}
	}
}

func (r *Run) noteArrival(f *Flight) {
	if f.arrived == 2 {
		r.twice[f.From]++
	}
}

func (r *Run) noteLatency(from Side, d time.Duration) {
	r.delivered[from]++
	r.latencies.add(d)
	r.recent = append(r.recent, d)
}

// hash takes what happened on a link into the digest (FNV-1a, 64 bits).
func (r *Run) hash(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
	const prime = 1099511628211
	h := r.digest
	if h == 0 {
		h = 14695981039346656037
	}
	for n := uint64(at); n != 0; n >>= 8 {
		h = (h ^ n&0xFF) * prime
	}
	h = (h ^ uint64(d)) * prime
	h = (h ^ uint64(what)) * prime
	for _, b := range datagram {
		h = (h ^ uint64(b)) * prime
	}
	r.digest = h
}

// histogram counts latencies in steps of a tenth of a millisecond.
type histogram struct {
	counts []uint32
	n      int
	max    time.Duration
}

const histogramStep = 100 * time.Microsecond

// maxHistogram is a minute: no event is older when it arrives, because sessions
// end before.
const maxHistogram = 600_000

func (h *histogram) add(d time.Duration) {
	i := min(int(d/histogramStep), maxHistogram)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint32, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.n++
	h.max = max(h.max, d)
}

// quantile returns the latency that so many of 1,000 do not exceed, rounded down
// to a step; never, if there were none.
func (h *histogram) quantile(of1000 int) time.Duration {
	if h.n == 0 {
		return never
	}
	rank := (h.n*of1000 + 999) / 1000
	for i, count := range h.counts {
		if rank -= int(count); rank <= 0 {
			return time.Duration(i) * histogramStep
		}
	}
	return h.max
}

// Latencies returns how many events took how long, in so many bins of a width.
// Those beyond the last are counted in it.
func (r *Run) Latencies(width time.Duration, bins int) []int {
	out := make([]int, bins)
	for i, count := range r.latencies.counts {
		out[min(int(time.Duration(i)*histogramStep/width), bins-1)] += int(count)
	}
	return out
}

// Figure is a number that a run came to.
type Figure struct{ Key, Label, Value string }

// Figures returns what the run has come to so far.
func (r *Run) Figures() []Figure {
	client, server := r.peers[Client].Stats(), r.peers[Server].Stats()
	events := r.sent[Client] + r.sent[Server]
	delivered := r.delivered[Client] + r.delivered[Server]
	return []Figure{
		{"time", "Virtual time", formatTime(r.Now()) + " s"},
		{"sent", "Datagrams sent, client, server", two(r.datagrams)},
		{"lost", "lost on the way", two(r.lost)},
		{"queue", "dropped by the queue", two(r.queueLost)},
		{"twice", "arrived twice", two(r.twice)},
		{"bytes", "Bytes, client, server", two(r.bytes)},
		{"events", "Events sent", strconv.Itoa(events)},
		{"delivered", "delivered", strconv.Itoa(delivered)},
		{"copies", "copies of each", ratio(r.copies, events)},
		{"needless", "copies for nothing", strconv.FormatUint(client.EventsDuplicate+server.EventsDuplicate, 10)},
		{"refused", "no room for", strconv.Itoa(r.refused)},
		{"p50", "Latency, p50", Milliseconds(r.latencies.quantile(500))},
		{"p99", "p99", Milliseconds(r.latencies.quantile(990))},
		{"p999", "p99.9", Milliseconds(r.latencies.quantile(999))},
		{"max", "longest", Milliseconds(r.longest())},
		{"rtt", "Smoothed RTT, client, server", times(client.RTT, server.RTT)},
		{"minrtt", "shortest lately", times(client.MinRTT, server.MinRTT)},
		{"queuedelay", "of it in a queue", times(client.QueueDelay, server.QueueDelay)},
		{"unacknowledged", "Received, never acknowledged", two([2]int{int(client.AcksOutrun), int(server.AcksOutrun)})},
		{"known", "known to be delivered", two([2]int{int(client.Delivered), int(server.Delivered)})},
		{"state", "Sessions", r.state(Client) + ", " + r.state(Server)},
		{"digest", "Digest of all", hex(r.digest, 16)},
	}
}

func (r *Run) longest() time.Duration {
	if r.latencies.n == 0 {
		return never
	}
	return r.latencies.max
}

// state says whether a side's session lives, or why not.
func (r *Run) state(side Side) string {
	if err := r.peers[side].Err(); err != nil {
		return err.Error()
	}
	return "alive"
}

// times writes two times with one unit.
func times(a, b time.Duration) string {
	return strings.TrimSuffix(Milliseconds(a), " ms") + ", " + Milliseconds(b)
}

func two(n [2]int) string { return strconv.Itoa(n[0]) + ", " + strconv.Itoa(n[1]) }

// ratio writes a/b with two decimals, rounded down.
func ratio(a, b int) string {
	if b == 0 {
		return "–"
	}
	n := a * 100 / b
	return strconv.Itoa(n/100) + "." + strconv.Itoa(100 + n%100)[1:]
}

// Milliseconds writes a duration with one decimal, rounded down.
func Milliseconds(d time.Duration) string {
	if d < 0 {
		return "–"
	}
	n := int(d / (100 * time.Microsecond))
	return strconv.Itoa(n/10) + "." + strconv.Itoa(n%10) + " ms"
}

// Report plays a run to a time, and the second if there is one, and returns the
// figures as lines of text: what a command line prints and a page must equal.
func Report(s Settings, until time.Duration) (string, error) {
	s.Moment = 0
	var b strings.Builder
	b.WriteString("#" + s.String() + "\n")
	runs := []Settings{s}
	if s.Compare {
		runs = append(runs, s.Second())
	}
	for i, s := range runs {
		r, err := New(s)
		if err != nil {
			return "", err
		}
		r.Advance(until)
		if s.Compare {
			b.WriteString("run " + strconv.Itoa(i+1) + "\n")
		}
		for _, f := range r.Figures() {
			b.WriteString("  " + f.Key + ": " + f.Value + "\n")
		}
	}
	return b.String(), nil
}

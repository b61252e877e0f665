package simnet

import (
	"fmt"
	"go/build"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gossip is a Node that logs what it receives, answers if told to, and sends what
// lies in its outbox once deadline has come.
type gossip struct {
	name     string
	clock    *manual
	log      *[]string
	answer   string
	outbox   []letter
	deadline time.Time // zero for none
	onDue    func()
}

type letter struct {
	to   netip.AddrPort
	text string
}

func (g *gossip) say(format string, args ...any) {
	*g.log = append(*g.log, fmt.Sprintf("%v %s ", g.clock.t.Sub(epoch), g.name)+fmt.Sprintf(format, args...))
}

func (g *gossip) Receive(from netip.AddrPort, datagram []byte) {
	g.say("got %s from %v", datagram, from)
	if g.answer != "" {
		g.write(from, g.answer)
	}
}

func (g *gossip) write(to netip.AddrPort, text string) {
	g.outbox, g.deadline = append(g.outbox, letter{to, text}), g.clock.t
}

func (g *gossip) Due(send func(netip.AddrPort, []byte)) {
	if g.onDue != nil {
		g.onDue()
	}
	for _, l := range g.outbox {
		send(l.to, []byte(l.text))
	}
	g.outbox, g.deadline = nil, time.Time{}
}

func (g *gossip) Deadline() (time.Time, bool) { return g.deadline, !g.deadline.IsZero() }

// newGossips returns a Net of n nodes with the addresses 0…n-1, all links alike.
func newGossips(n int, cfg Config) (net *Net, nodes []*gossip, log *[]string) {
	clock := &manual{epoch}
	net, log = NewNet(1, clock), new([]string)
	for i := range n {
		g := &gossip{name: fmt.Sprint("n", i), clock: clock, log: log}
		net.Add(Addr(i), g, cfg, cfg)
		nodes = append(nodes, g)
	}
	return net, nodes, log
}

func TestNetDelivers(t *testing.T) {
	net, nodes, log := newGossips(3, Config{})
	net.Up(Addr(0)).SetConfig(0, Config{Delay: 30 * ms})
	net.Down(Addr(2)).SetConfig(0, Config{Delay: 5 * ms})
	nodes[2].answer = "pong"
	nodes[0].write(Addr(2), "ping")
	nodes[0].write(Addr(1), "hello")
	net.Run(time.Second)
	require.Equal(t, []string{
		"30ms n1 got hello from 10.0.0.0:4000",
		"35ms n2 got ping from 10.0.0.0:4000",
		"35ms n0 got pong from 10.0.0.2:4000",
	}, *log)
	require.Equal(t, time.Second, net.Now())
	require.Equal(t, 2, net.Up(Addr(0)).Stats().Sent)
	require.Equal(t, 1, net.Down(Addr(0)).Stats().Delivered)
}

func TestNetOrderAtOneInstant(t *testing.T) {
	net, nodes, log := newGossips(3, Config{Delay: 5 * ms})
	for i := 2; i >= 0; i-- { // the order of the calls, not of the ends
		nodes[i].write(Addr((i+1)%3), "a")
		nodes[i].write(Addr((i+2)%3), "b")
	}
	net.At(10*ms, func() { *log = append(*log, "function") })
	net.Run(time.Second)
	require.Equal(t, []string{
		"10ms n0 got b from 10.0.0.1:4000",
		"10ms n0 got a from 10.0.0.2:4000",
		"10ms n1 got a from 10.0.0.0:4000",
		"10ms n1 got b from 10.0.0.2:4000",
		"10ms n2 got b from 10.0.0.0:4000",
		"10ms n2 got a from 10.0.0.1:4000",
		"function",
	}, *log)
}

func TestDialedEndHearsItsPeerAlone(t *testing.T) {
	net, nodes, log := newGossips(2, Config{})
	client := &toy{name: "client", clock: nodes[0].clock, log: log, answer: "hi"}
	net.Dial(Addr(9), Addr(0), client, Config{}, Config{})
	nodes[1].write(Addr(9), "from a stranger")
	nodes[0].write(Addr(9), "from the server")
	net.Run(time.Second)
	require.Equal(t, []string{
		"0s client got from the server",
		"0s client sends hi",
		"0s client idle", // the stranger's datagram reached the socket, not the client
		"0s n0 got hi from 10.0.0.9:4000",
	}, (*log)[len(*log)-4:])
	require.Zero(t, net.Unreachable())
}

func TestNobodyHasTheAddress(t *testing.T) {
	net, nodes, log := newGossips(1, Config{Delay: ms})
	nodes[0].write(Addr(1), "lost")
	nodes[0].write(netip.AddrPort{}, "lost")
	net.Run(time.Second)
	require.Empty(t, *log)
	require.Equal(t, 2, net.Unreachable())
}

func TestRemovedEndIsGoneAtOnce(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: 10 * ms})
	nodes[0].write(Addr(1), "last words")
	nodes[1].write(Addr(0), "too late")
	net.At(5*ms, func() { net.Remove(Addr(0)) })
	net.Run(time.Second)
	require.Equal(t, []string{"20ms n1 got last words from 10.0.0.0:4000"}, *log)
	require.Equal(t, 1, net.Unreachable(), "nobody had the address when it left the up link")
	require.Len(t, net.ends, 1)
	require.Zero(t, net.gone)

	// On the down link already.
	nodes[1].write(Addr(1), "to myself")
	net.At(net.Now()+15*ms, func() { net.Remove(Addr(1)) })
	net.Run(2 * time.Second)
	require.Len(t, *log, 1)
	require.Equal(t, 2, net.Unreachable())
	require.Empty(t, net.ends)
}

func TestRestartAtTheSameAddress(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: 10 * ms})
	nodes[0].write(Addr(1), "one")
	nodes[1].write(Addr(0), "on the down link of the old one")
	again := &gossip{name: "again", clock: nodes[0].clock, log: log}
	net.At(15*ms, func() {
		net.Remove(Addr(0))
		net.Add(Addr(0), again, Config{}, Config{})
		nodes[1].write(Addr(0), "two")
	})
	net.Run(time.Second)
	require.Equal(t, []string{"20ms n1 got one from 10.0.0.0:4000", "25ms again got two from 10.0.0.1:4000"}, *log)
}

func TestNodeRemovesItself(t *testing.T) {
	net, nodes, log := newGossips(2, Config{})
	nodes[0].onDue = func() { net.Remove(Addr(0)) }
	nodes[1].write(Addr(0), "one")
	nodes[1].write(Addr(0), "two")
	net.Run(time.Second)
	require.Equal(t, []string{"0s n0 got one from 10.0.0.1:4000"}, *log)
	require.Equal(t, 1, net.Unreachable())
}

func TestEndThatAnotherAddsIsAsked(t *testing.T) {
	net, nodes, log := newGossips(1, Config{})
	added := &gossip{name: "added", clock: nodes[0].clock, log: log}
	added.write(Addr(0), "hello")
	nodes[0].onDue = func() {
		nodes[0].onDue = nil
		net.Add(Addr(1), added, Config{}, Config{})
	}
	nodes[0].deadline = epoch.Add(ms)
	net.Run(time.Second)
	require.Equal(t, []string{"1ms n0 got hello from 10.0.0.1:4000"}, *log)
}

// asked counts how often an end is asked for its Deadline.
type asked struct {
	*gossip
	times int
}

func (a *asked) Deadline() (time.Time, bool) {
	a.times++
	return a.gossip.Deadline()
}

func TestIdleEndsCostNothing(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: ms})
	idle := &asked{gossip: &gossip{clock: nodes[0].clock, log: log}}
	net.Add(Addr(2), idle, Config{}, Config{})
	nodes[0].answer, nodes[1].answer = "ping", "pong"
	net.Send(Addr(0), Addr(1), nil)
	net.Run(time.Second)
	require.Len(t, *log, 500)
	require.Equal(t, 1, idle.times)
}

func TestMove(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: 10 * ms})
	nodes[0].write(Addr(1), "from the old address")
	nodes[1].write(Addr(0), "to the old address")
	moved := netip.MustParseAddrPort("[2001:db8::1]:5000")
	net.At(15*ms, func() {
		net.Move(Addr(0), moved)
		nodes[0].write(Addr(1), "from the new address")
	})
	net.At(30*ms, func() { nodes[1].write(moved, "to the new address") })
	net.Run(time.Second)
	require.Equal(t, []string{
		"20ms n1 got from the old address from 10.0.0.0:4000",
		"35ms n1 got from the new address from [2001:db8::1]:5000",
		"50ms n0 got to the new address from 10.0.0.1:4000",
	}, *log)
	require.Equal(t, 2, net.Up(moved).Stats().Sent, "its links are the same")
}

func TestStrangersNeedNoEnd(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: 10 * ms})
	nodes[0].answer = "who are you?"
	net.Send(Addr(77), Addr(0), []byte("spoofed"))
	net.Send(Addr(1), Addr(0), []byte("mine"))
	net.Run(time.Second)
	require.Equal(t, []string{
		"10ms n0 got spoofed from 10.0.0.77:4000",
		"20ms n0 got mine from 10.0.0.1:4000",
		"40ms n1 got who are you? from 10.0.0.0:4000",
	}, *log)
	require.Equal(t, 1, net.Unreachable())
}

// A datagram from the address that an end had is no longer that end's, which a test that
// goes on sending should not find out by wondering.
func TestSendFromAnAddressThatMoved(t *testing.T) {
	net, nodes, log := newGossips(2, Config{Delay: 10 * ms})
	net.Move(Addr(1), Addr(5))
	const want = "simnet: Send from 10.0.0.1:4000, whose end moved to 10.0.0.5:4000; Spoof sends as a stranger"
	require.PanicsWithValue(t, want, func() { net.Send(Addr(1), Addr(0), []byte("mine?")) })
	net.Spoof(Addr(1), Addr(0), []byte("the old address"))
	net.Spoof(Addr(5), Addr(0), []byte("the new address"))
	net.Send(Addr(5), Addr(0), []byte("mine"))
	net.Run(time.Second)
	require.Equal(t, []string{
		"10ms n0 got the old address from 10.0.0.1:4000",
		"10ms n0 got the new address from 10.0.0.5:4000",
		"20ms n0 got mine from 10.0.0.5:4000",
	}, *log)

	net.Move(Addr(5), Addr(1)) // and back
	net.Send(Addr(1), Addr(0), nil)
	require.Panics(t, func() { net.Send(Addr(5), Addr(0), nil) })
	net.Add(Addr(5), nodes[1], Config{}, Config{})
	net.Send(Addr(5), Addr(0), nil)
	net.Remove(Addr(5))
	net.Send(Addr(5), Addr(0), nil) // its last end was removed, and did not move
	require.Equal(t, 2, net.Up(Addr(1)).Stats().Sent, "its links are the same")
}

func TestMappedAddressesAreIPv4(t *testing.T) {
	net, nodes, log := newGossips(1, Config{})
	mapped := netip.AddrPortFrom(netip.AddrFrom16(Addr(1).Addr().As16()), Addr(1).Port())
	require.True(t, mapped.Addr().Is4In6())
	net.Add(mapped, &gossip{name: "mapped", clock: nodes[0].clock, log: log, answer: "here"}, Config{}, Config{})
	nodes[0].write(Addr(1), "where?")
	net.Run(time.Second)
	require.Equal(t, []string{"0s mapped got where? from 10.0.0.0:4000", "0s n0 got here from 10.0.0.1:4000"}, *log)
}

func TestNetObserver(t *testing.T) {
	net, nodes, _ := newGossips(2, Config{Delay: 10 * ms})
	var got []string
	net.Observe(func(at time.Duration, from, to netip.AddrPort, what What, datagram []byte) {
		got = append(got, fmt.Sprintf("%v %v %v %v %s", at, from.Addr(), to.Addr(), what, datagram))
	})
	net.Add(Addr(2), &gossip{clock: nodes[0].clock, log: new([]string)}, Config{Loss: 1}, Config{Duplicate: 1})
	nodes[0].write(Addr(2), "x")
	nodes[0].write(Addr(3), "y")
	net.Send(Addr(2), Addr(0), []byte("z"))
	net.Send(Addr(4), Addr(1), []byte("w"))
	net.At(5*ms, func() { net.Remove(Addr(1)) })
	net.Run(time.Second)
	require.Equal(t, []string{
		"0s 10.0.0.2 10.0.0.0 sent z",
		"0s 10.0.0.2 10.0.0.0 lost z",
		"0s 10.0.0.4 10.0.0.1 sent w",
		"0s 10.0.0.0 10.0.0.2 sent x",
		"0s 10.0.0.0 10.0.0.3 sent y",
		"10ms 10.0.0.0 10.0.0.2 duplicated x",
		"10ms 10.0.0.0 10.0.0.3 unreachable y",
		"10ms 10.0.0.4 10.0.0.1 unreachable w",
		"10ms 10.0.0.0 10.0.0.2 delivered x",
		"10ms 10.0.0.0 10.0.0.2 delivered x",
	}, got)
	net.Observe(nil)
	net.Send(Addr(4), Addr(2), nil)
	net.Run(2 * time.Second)
	require.Len(t, got, 10)
	require.Equal(t, 2, net.Unreachable())
}

func TestNetPanicsOnWrongArguments(t *testing.T) {
	net, nodes, _ := newGossips(2, Config{})
	require.PanicsWithValue(t, "simnet: two ends at 10.0.0.1:4000", func() { net.Add(Addr(1), nodes[0], Config{}, Config{}) })
	require.PanicsWithValue(t, "simnet: two ends at 10.0.0.1:4000", func() { net.Move(Addr(0), Addr(1)) })
	require.PanicsWithValue(t, "simnet: nobody at 10.0.0.7:4000", func() { net.Remove(Addr(7)) })
	require.PanicsWithValue(t, "simnet: nobody at 10.0.0.7:4000", func() { net.Up(Addr(7)) })
	require.PanicsWithValue(t, "simnet: the zero AddrPort is no address", func() { net.Add(netip.AddrPort{}, nodes[0], Config{}, Config{}) })
	require.PanicsWithValue(t, "simnet: no address number 16777216", func() { Addr(1 << 24) })
	require.Panics(t, func() { Addr(-1) })
	require.Equal(t, "10.255.255.255:4000", Addr(1<<24-1).String())
}

func TestStuckNetNamesWhoIsBusy(t *testing.T) {
	net, nodes, _ := newGossips(20, Config{})
	for _, g := range nodes {
		g.onDue = func() { net.At(0, func() {}) }
	}
	net.At(0, func() {})
	require.PanicsWithValue(t, "simnet: never idle: 10000 rounds at 0s without time moving; function scheduled now: true",
		func() { net.Run(time.Second) })

	net, nodes, _ = newGossips(20, Config{})
	for i := range nodes {
		net.Add(Addr(100+i), &restless{}, Config{}, Config{})
	}
	require.PanicsWithValue(t, "simnet: never idle: 10000 rounds at 0s without time moving;"+
		" 10.0.0.100:4000: deadline 0s; 10.0.0.101:4000: deadline 0s; 10.0.0.102:4000: deadline 0s;"+
		" 10.0.0.103:4000: deadline 0s; 10.0.0.104:4000: deadline 0s; 10.0.0.105:4000: deadline 0s;"+
		" 10.0.0.106:4000: deadline 0s; 10.0.0.107:4000: deadline 0s; and 12 more; function scheduled now: false",
		func() { net.Run(time.Second) })
}

// restless always has something to do, and never does it.
type restless struct{}

func (restless) Receive(netip.AddrPort, []byte)   {}
func (restless) Due(func(netip.AddrPort, []byte)) {}
func (restless) Deadline() (time.Time, bool)      { return epoch, true }

// What one end does leaves the losses of the others as they are, and so does an end
// that comes later.
func TestEndsAreIndependent(t *testing.T) {
	play := func(noisy bool) (got []string) {
		net, nodes, _ := newGossips(3, storm)
		net.Down(Addr(0)).SetConfig(0, Config{}) // the shared link has no limit
		net.Observe(func(at time.Duration, from, to netip.AddrPort, what What, datagram []byte) {
			if from == Addr(1) {
				got = append(got, fmt.Sprint(at, what, datagram))
			}
		})
		net.Every(50, time.Second, func() {
			nodes[1].write(Addr(0), "same bytes")
			if noisy {
				nodes[2].write(Addr(0), "noise")
				nodes[0].write(Addr(1), "noise")
			}
		})
		if noisy {
			net.At(time.Second, func() { net.Add(Addr(3), nodes[2], storm, storm) })
		}
		net.Run(10 * time.Second)
		return got
	}
	require.Equal(t, play(false), play(true))
}

// The number is the same on every architecture: a swarm in bad conditions, in which
// ends come, go, restart and move.
func TestNetTraceIsTheSameEverywhere(t *testing.T) {
	hash, log := netTrace(1)
	require.Equal(t, 28601, log)
	require.Equal(t, uint64(0x273fea916d191181), hash)
	again, _ := netTrace(1)
	require.Equal(t, hash, again)
	other, _ := netTrace(2)
	require.NotEqual(t, hash, other)
}

func netTrace(seed uint64) (hash uint64, lines int) {
	clock, log, sum := &manual{epoch}, new([]string), fnv.New64a()
	net, rng := NewNet(seed, clock), rand.New(rand.NewPCG(1, 1))
	net.Observe(func(at time.Duration, from, to netip.AddrPort, what What, datagram []byte) {
		fmt.Fprintf(sum, "%d %v %v %v %x\n", at, from, to, what, datagram)
		lines++
	})
	const ends = 20
	at := make([]netip.AddrPort, ends) // where each is now
	nodes := make([]*gossip, ends)
	add := func(i int) {
		at[i], nodes[i] = Addr(i), &gossip{name: fmt.Sprint(i), clock: clock, log: log}
		net.Add(at[i], nodes[i], storm, storm)
	}
	for i := range ends {
		add(i)
	}
	nodes[0].answer = "yes"
	net.Every(40, time.Second, func() {
		for i := range ends {
			nodes[i].write(at[rng.IntN(ends)], fmt.Sprint("hello from ", i))
			nodes[i].write(at[0], "to the first")
		}
	})
	net.Every(7, time.Second, func() {
		switch i := 1 + rng.IntN(ends-1); rng.IntN(3) {
		case 0:
			to := Addr(1000 + rng.IntN(1_000_000))
			net.Move(at[i], to)
			at[i] = to
		case 1:
			net.Remove(at[i])
			add(i)
		case 2:
			net.Send(Addr(77), at[i], []byte("from nowhere"))
		}
	})
	net.Run(4 * time.Second)
	for _, line := range *log {
		fmt.Fprintln(sum, line)
	}
	return sum.Sum64(), lines + len(*log)
}

// still is a node that costs nothing.
type still struct {
	to       netip.AddrPort
	datagram [100]byte
}

func (s *still) Receive(netip.AddrPort, []byte)        {}
func (s *still) Due(send func(netip.AddrPort, []byte)) { send(s.to, s.datagram[:]) }
func (s *still) Deadline() (time.Time, bool)           { return time.Time{}, false }

func TestNetAllocatesNothingInSteadyState(t *testing.T) {
	net, cfg := NewNet(1, &manual{epoch}), Config{Delay: 5 * ms, Loss: 0.6, Jitter: ms}
	for i := range 10 {
		net.Add(Addr(i), &still{to: Addr((i + 1) % 11)}, cfg, cfg)
	}
	net.Every(60, time.Second, func() {})
	net.Run(20 * time.Second)
	require.Zero(t, testing.AllocsPerRun(50, func() { net.Run(net.Now() + time.Second) }))
}

// BenchmarkSwarm is a second of a server and so many clients at 60 Hz, each at a
// phase of its own, that do nothing else.
func BenchmarkSwarm(b *testing.B) {
	for _, bots := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(bots), func(b *testing.B) {
			net, cfg := NewNet(1, &manual{epoch}), Config{Delay: 30 * ms, Jitter: 5 * ms, Loss: 0.01}
			net.Add(Addr(0), new(echo), Config{}, Config{})
			for i := range bots {
				net.Dial(Addr(1+i), Addr(0), &pulse{clock: net.clock, next: epoch.Add(time.Duration(i) * 16667 * time.Microsecond / time.Duration(bots))}, cfg, cfg)
			}
			b.ReportAllocs()
			for b.Loop() {
				net.Run(net.Now() + time.Second)
			}
		})
	}
}

// echo answers what it receives.
type echo struct {
	from netip.AddrPort
	buf  [100]byte
}

func (e *echo) Receive(from netip.AddrPort, _ []byte) { e.from = from }
func (e *echo) Deadline() (time.Time, bool)           { return time.Time{}, false }
func (e *echo) Due(send func(netip.AddrPort, []byte)) {
	if e.from.IsValid() {
		send(e.from, e.buf[:])
		e.from = netip.AddrPort{}
	}
}

// pulse sends at 60 Hz.
type pulse struct {
	clock Clock
	next  time.Time
	buf   [100]byte
}

func (p *pulse) Receive([]byte)              {}
func (p *pulse) Deadline() (time.Time, bool) { return p.next, true }
func (p *pulse) Due(send func([]byte)) {
	if !p.clock.Now().Before(p.next) {
		p.next = p.next.Add(time.Second / 60)
		send(p.buf[:])
	}
}

func TestOnlyTheStandardLibraryIsImported(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	require.NotEmpty(t, pkg.Imports)
	for _, path := range pkg.Imports {
		first, _, _ := strings.Cut(path, "/")
		require.NotContains(t, first, ".", "%s is not of the standard library", path)
		require.NotEqual(t, "net", path, "netip is not the network")
	}
}

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
	"github.com/quic-go/quic-go"
	"github.com/xtaci/kcp-go/v5"

	"github.com/ackbits/ackbits/internal/scenario"
	"github.com/ackbits/ackbits/simnet"
)

// A peer is another library. It reads the clock itself, and most start
// goroutines, so each game runs in a bubble of testing/synctest, in which the
// clock jumps to the next thing that anyone waits for.
type peer struct {
	name, about string
	ordered     bool // it delivers in the order of sending
	// open connects the two ends. Messages that arrive go to the game.
	open func(g *peerGame) (peerConn, error)
}

// peerConn is a connection. The game calls it from one goroutine.
type peerConn interface {
	send(from int, message []byte) error
	tick() // after the messages of a tick
	close()
}

var peers = []peer{
	{"kcp", "kcp-go's core, NoDelay(1, 10, 2, 1), windows of 256, acknowledgements at once, flush on each tick", true, openKCP},
	{"quic", "quic-go, one stream each way, defaults", true, openQUIC},
	{"quic-streams", "quic-go, a stream for each message, defaults", false, openQUICStreams},
	{"sctp", "pion/sctp, unordered and reliable, RTO max 250 ms", false, openSCTP},
}

// missingPeers are the ones that the comparison would like to have.
var missingPeers = []struct{ Name, Why string }{
	{"ENet", "is a C library that needs a C compiler and keeps its clock and its sockets in globals, so that one game at a time could run; internal/bench measures what it costs"},
	{"KCP with FEC", "kcp-go has it in its UDPSession only, which is flushed by a scheduler that all sessions of a process share and that no bubble contains"},
	{"RakNet, Netcode", "no Go module of either could be had that is kept up"},
}

// peerGame is one game of a peer.
type peerGame struct {
	mu        sync.Mutex
	start     time.Time
	links     [2]*peerLink // by sender
	traffic   scenario.Traffic
	sentAt    [2][]time.Duration // by sender and number
	received  [2][]bool
	latencies []time.Duration
	twice     int
	shared    bool   // the link has a rate or a policer, which concerns the state, too
	bare      states // over it
}

// bareState begins the state datagrams that go beside a peer where the link has a
// rate or a policer, so that the peer has no more of it than ackbits has. They do not reach the
// peer and are not counted: the bytes are those beyond the state.
const bareState = "\xffbare state\xff"

// sendStates sends what is due of them at a tick.
func (g *peerGame) sendStates(tick int) {
	if !g.shared {
		return
	}
	for from, rate := range []int{g.traffic.StateA, g.traffic.StateB} {
		if (tick+1)*rate/g.traffic.TickRate > tick*rate/g.traffic.TickRate {
			datagram := append(make([]byte, 0, g.traffic.StateSize), bareState...)
			datagram = binary.LittleEndian.AppendUint64(datagram, uint64(time.Since(g.start)))
			g.mu.Lock()
			g.bare.sent++
			g.mu.Unlock()
			g.links[from].put(datagram[:g.traffic.StateSize])
		}
	}
}

// takeState takes a datagram that arrived, if it is one of those.
func (g *peerGame) takeState(datagram []byte) bool {
	if !bytes.HasPrefix(datagram, []byte(bareState)) {
		return false
	}
	sent := time.Duration(binary.LittleEndian.Uint64(datagram[len(bareState):]))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bare.ages = append(g.bare.ages, time.Since(g.start)-sent)
	return true
}

// drain is how long what is in flight at the end is waited for.
const drain = time.Minute

// play runs a game. The connection is made over a perfect link, for how long a
// handshake takes is not the question here.
func (p *peer) play(t *testing.T, seed uint64, over link, traffic scenario.Traffic) (r scenario.Result, of states) {
	synctest.Test(t, func(*testing.T) {
		g := &peerGame{start: time.Now(), traffic: traffic}
		for i := range g.links {
			g.links[i] = newPeerLink(i+1, simnet.NewLink(seed*2+uint64(i), simnet.Config{Delay: over.cfg.Delay}))
		}
		g.links[0].other, g.links[1].other = g.links[1], g.links[0]
		conn, err := p.open(g)
		if err != nil {
			r.Err = err
			return
		}
		for _, l := range g.links {
			l.become(over.cfg)
			l.mu.Lock()
			l.aside, l.police = g.takeState, over.police.Bucket()
			l.mu.Unlock()
		}
		g.shared = over.shared()
		for _, c := range over.changes(traffic.Duration) {
			time.AfterFunc(c.At, func() {
				g.links[0].turn(c.Link)
				g.links[1].turn(c.Link)
			})
		}
		r.Err = g.run(conn)
		r.Latencies, r.Twice = g.latencies, g.twice
		slices.Sort(r.Latencies)
		var sent int
		for i, l := range g.links {
			r.Sent += len(g.sentAt[i])
			sent += l.bytes
		}
		r.Bytes = float64(sent) / float64(max(r.Sent, 1))
		conn.close()
		time.Sleep(time.Minute) // for goroutines that take their time to end
		synctest.Wait()
		of = g.bare // those in flight arrived meanwhile
	})
	return r, of
}

func (g *peerGame) run(conn peerConn) error {
	g.start = time.Now()
	ticks := int(g.traffic.Duration * time.Duration(g.traffic.TickRate) / time.Second)
	message := make([]byte, g.traffic.EventSize)
	last := ticks + int(drain*time.Duration(g.traffic.TickRate)/time.Second)
	for tick := range last {
		time.Sleep(time.Until(g.start.Add(time.Duration(tick) * time.Second / time.Duration(g.traffic.TickRate))))
		synctest.Wait()
		if tick < ticks {
			for range g.traffic.Events(tick) {
				for from := range g.sentAt {
					g.mu.Lock()
					binary.LittleEndian.PutUint64(message, uint64(len(g.sentAt[from])))
					g.sentAt[from] = append(g.sentAt[from], time.Since(g.start))
					g.received[from] = append(g.received[from], false)
					g.mu.Unlock()
					if err := conn.send(from, message); err != nil {
						return err
					}
				}
			}
		} else if g.done() {
			break
		}
		g.sendStates(tick)
		conn.tick()
	}
	return nil
}

func (g *peerGame) done() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.latencies) == len(g.sentAt[0])+len(g.sentAt[1])
}

// deliver takes a message that arrived.
func (g *peerGame) deliver(from int, message []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := int(binary.LittleEndian.Uint64(message))
	if g.received[from][k] {
		g.twice++
		return
	}
	g.received[from][k] = true
	g.latencies = append(g.latencies, time.Since(g.start)-g.sentAt[from][k])
}

// peerLink is one end of the path: what is written goes over the link to the
// other. It is a net.PacketConn and a net.Conn, see socket.go.
type peerLink struct {
	mu    sync.Mutex
	ready sync.Cond
	link  *simnet.Link
	start time.Time
	timer *time.Timer
	other *peerLink
	port  int
	bytes int // written, with the headers of UDP and IP

	police *scenario.Bucket // nil: there is none

	aside   func(datagram []byte) bool // if not nil, takes what is not for the peer
	arrive  func(datagram []byte)      // if nil, datagrams wait to be read
	waiting [][]byte
	expired bool
	closed  bool
}

func newPeerLink(port int, link *simnet.Link) *peerLink {
	l := &peerLink{link: link, port: port, start: time.Now()}
	l.ready.L = &l.mu
	l.timer = time.AfterFunc(time.Hour, l.pump)
	return l
}

// turn changes the network conditions.
func (l *peerLink) turn(cfg simnet.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link.SetConfig(time.Since(l.start), cfg)
}

// become is turn, and counts from here on.
func (l *peerLink) become(cfg simnet.Config) {
	l.turn(cfg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = 0
}

// send puts a datagram on the way.
func (l *peerLink) send(datagram []byte) {
	l.put(datagram)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += len(datagram) + simnet.UDPOverIPv4
}

// put is send, not counted.
func (l *peerLink) put(datagram []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Since(l.start); l.police == nil || l.police.Passes(now, len(datagram)+simnet.UDPOverIPv4) {
		l.link.Send(now, datagram)
		l.arm()
	}
}

func (l *peerLink) arm() {
	if at, ok := l.link.Next(); ok {
		l.timer.Reset(at - time.Since(l.start))
	}
}

// pump delivers what has arrived.
func (l *peerLink) pump() {
	for {
		l.mu.Lock()
		datagram, ok := l.link.Receive(time.Since(l.start))
		if !ok {
			l.arm()
			l.mu.Unlock()
			return
		}
		datagram = slices.Clone(datagram)
		aside := l.aside
		l.mu.Unlock()
		if aside == nil || !aside(datagram) {
			l.other.take(datagram)
		}
	}
}

func (l *peerLink) take(datagram []byte) {
	l.mu.Lock()
	if l.arrive == nil {
		l.waiting = append(l.waiting, datagram)
		l.ready.Signal()
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.arrive(datagram)
}

// KCP.

type kcpConn struct {
	mu   sync.Mutex
	ends [2]*kcp.KCP
}

func openKCP(g *peerGame) (peerConn, error) {
	c := new(kcpConn)
	buf := make([]byte, 2048)
	for i := range c.ends {
		end := kcp.NewKCP(1, func(buf []byte, size int) { g.links[i].send(buf[:size]) })
		end.NoDelay(1, 10, 2, 1)
		end.WndSize(256, 256)
		c.ends[i] = end
		g.links[i].arrive = func(datagram []byte) {
			c.mu.Lock()
			defer c.mu.Unlock()
			end.Input(datagram, kcp.IKCP_PACKET_REGULAR, true)
			for n := end.Recv(buf); n >= 0; n = end.Recv(buf) {
				g.deliver(1-i, buf[:n])
			}
		}
	}
	return c, nil
}

func (c *kcpConn) send(from int, message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[from].Send(message) < 0 {
		return errors.New("kcp: Send failed")
	}
	return nil
}

func (c *kcpConn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.ends {
		end.Update()
	}
}

func (c *kcpConn) close() {}

// QUIC.

type quicConn struct {
	links      [2]*peerLink
	transports [2]*quic.Transport
	listener   *quic.Listener
	ends       [2]*quic.Conn
	streams    [2]*quic.SendStream // nil: one for each message

	queues [2]chan []byte // what is to be written: Write blocks, and a game does not wait for it
	failed [2]chan error
}

// startWriters lets each end write what its queue has.
func (c *quicConn) startWriters() {
	for i := range c.queues {
		c.queues[i], c.failed[i] = make(chan []byte, 1<<16), make(chan error, 1)
		go func() {
			for message := range c.queues[i] {
				if err := c.write(i, message); err != nil {
					c.failed[i] <- err
					return
				}
			}
		}()
	}
}

func openQUIC(g *peerGame) (peerConn, error) {
	c, err := dialQUIC(g.links)
	if err != nil {
		return nil, err
	}
	for i, end := range c.ends {
		if c.streams[i], err = end.OpenUniStream(); err != nil {
			return nil, err
		}
		go func() { // what the other end sends
			in, err := end.AcceptUniStream(context.Background())
			message := make([]byte, g.traffic.EventSize)
			for err == nil {
				if _, err = io.ReadFull(in, message); err == nil {
					g.deliver(1-i, message)
				}
			}
		}()
	}
	c.startWriters()
	return c, nil
}

func openQUICStreams(g *peerGame) (peerConn, error) {
	c, err := dialQUIC(g.links)
	if err != nil {
		return nil, err
	}
	for i, end := range c.ends {
		go func() {
			for {
				in, err := end.AcceptUniStream(context.Background())
				if err != nil {
					return
				}
				go func() {
					if message, err := io.ReadAll(in); err == nil {
						g.deliver(1-i, message)
					}
				}()
			}
		}()
	}
	c.startWriters()
	return c, nil
}

func (c *quicConn) send(from int, message []byte) error {
	select {
	case err := <-c.failed[from]:
		return err
	case c.queues[from] <- slices.Clone(message):
		return nil
	default:
		return fmt.Errorf("quic: %d messages wait", len(c.queues[from]))
	}
}

func (c *quicConn) write(from int, message []byte) error {
	if s := c.streams[from]; s != nil {
		_, err := s.Write(message)
		return err
	}
	s, err := c.ends[from].OpenUniStream()
	if err != nil {
		return err
	}
	if _, err := s.Write(message); err != nil {
		return err
	}
	return s.Close()
}

func (c *quicConn) tick() {}

func (c *quicConn) close() {
	for _, q := range c.queues {
		if q != nil { // not so for a file
			close(q)
		}
	}
	for _, end := range c.ends {
		_ = end.CloseWithError(0, "")
	}
	_ = c.listener.Close()
	for i, t := range c.transports {
		_ = t.Close()
		_ = c.links[i].Close()
	}
}

func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

func dialQUIC(links [2]*peerLink) (c *quicConn, err error) {
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	const protocol = "lab"
	cfg := &quic.Config{MaxIncomingUniStreams: 1 << 20, MaxIdleTimeout: time.Hour, EnableDatagrams: true}
	c = &quicConn{links: links}
	for i := range c.transports {
		c.transports[i] = &quic.Transport{Conn: links[i]}
	}
	server := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}}
	if c.listener, err = c.transports[0].Listen(server, cfg); err != nil {
		return nil, err
	}
	ctx := context.Background()
	client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}} // both ends are ours
	if c.ends[1], err = c.transports[1].Dial(ctx, links[0].LocalAddr(), client, cfg); err != nil {
		return nil, err
	}
	c.ends[0], err = c.listener.Accept(ctx)
	return c, err
}

// SCTP.

type sctpConn struct {
	links   [2]*peerLink
	ends    [2]*sctp.Association
	streams [2]*sctp.Stream
}

func dialSCTP(links [2]*peerLink) (*sctpConn, error) {
	c := &sctpConn{links: links}
	conn := func(i int) sctp.AssociationOption { return sctp.WithNetConn(links[i]) }
	dialled := make(chan error, 1)
	go func() {
		var err error
		c.ends[1], err = sctp.ClientWithOptions(conn(1), sctp.WithEnableZeroChecksum(true), sctp.WithRTOMax(250))
		dialled <- err
	}()
	var err error
	c.ends[0], err = sctp.ServerWithOptions(conn(0), sctp.WithEnableZeroChecksum(true), sctp.WithRTOMax(250))
	return c, errors.Join(err, <-dialled)
}

func openSCTP(g *peerGame) (peerConn, error) {
	c, err := dialSCTP(g.links)
	if err != nil {
		return nil, err
	}
	for i, end := range c.ends {
		if c.streams[i], err = end.OpenStream(1, sctp.PayloadTypeWebRTCBinary); err != nil {
			return nil, err
		}
		c.streams[i].SetReliabilityParams(true, sctp.ReliabilityTypeReliable, 0)
		go func() {
			message := make([]byte, 2048)
			for {
				n, err := c.streams[i].Read(message)
				if err != nil {
					return
				}
				g.deliver(1-i, message[:n])
			}
		}()
	}
	return c, nil
}

func (c *sctpConn) send(from int, message []byte) error {
	_, err := c.streams[from].Write(message)
	return err
}

func (c *sctpConn) tick() {}

func (c *sctpConn) close() {
	for i, end := range c.ends {
		_ = end.Close()
		_ = c.links[i].Close()
	}
}

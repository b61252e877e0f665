package endpoint

import (
	"crypto/ecdh"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/stretchr/testify/require"
)

// The states of client and server during the handshake are few. These tests walk
// through all of them: from each state every step there is (a message sent again,
// delivered, doubled, lost, overtaken; half a cookie's life passing; either end
// restarted) until no step leads to a state that was not seen. Time moves in slots of
// cookies, so ages are small numbers, and what is bounded (messages in flight,
// restarts) is bounded by the test.

// letter is a message in flight.
type letter struct {
	toServer bool
	data     []byte
	client   int   // whose, by number
	server   int   // of which run of the server: that sent it, that made its cookie or session; 0: no matter
	born     int64 // slot of its cookie
	sent     int   // how many slots had passed
	opened   bool  // of a session: it arrived once
}

// scene is one state of the world.
type scene struct {
	bounds
	mode        string // what Admit says: "admitted", "refused", or "pending" for a while
	clock       *ackbits.ManualClock
	slot        int64 // of the server
	passed      int   // slots in all
	server      *Server
	runs        int // of the server
	client      *Client
	clients     int
	whose       map[[keySize]byte]int // the clients' keys
	cookies     map[[cookieSize]byte]origin
	session     int // which run of the server the client's session is with
	mail        []letter
	joins       map[string]int
	played      map[string]bool
	forgottenAt map[string]int64 // slot from which on a client may be admitted anew
	heardAt     map[uint64]int64 // slot in which the server last heard of a session
	faults      []string
}

// origin says which run of the server made a cookie, and in which slot.
type origin struct {
	server int
	slot   int64
}

// bounds are those of a world: how many messages are in flight at most, and how
// often an end restarts.
type bounds struct{ wire, servers, clients int }

const sceneTimeout = 15 * time.Second // of sessions: longer than a slot, shorter than two

var sceneAddr = netip.MustParseAddrPort("198.51.100.7:4000")

func newScene(mode string, b bounds) *scene {
	s := &scene{mode: mode, bounds: b, clock: &ackbits.ManualClock{}, whose: map[[keySize]byte]int{}, cookies: map[[cookieSize]byte]origin{}, joins: map[string]int{}, played: map[string]bool{}, forgottenAt: map[string]int64{}, heardAt: map[uint64]int64{}}
	s.clock.Set(time.Unix(1_700_000_000, 0))
	s.restartServer()
	s.restartClient()
	return s
}

var sceneKey = func() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey(make([]byte, 32))
	must(err)
	return key
}()

func (s *scene) restartServer() {
	s.runs++
	var err error
	s.server, err = NewServer(ServerConfig{
		Key: sceneKey, Clock: s.clock, Rand: rand.NewChaCha8([32]byte{1, byte(s.runs)}),
		Session: ackbits.Config{Timeout: sceneTimeout}, Admit: s.admit(),
	})
	must(err)
	s.slot = 0 // its own count begins anew; the wire's goes by age, see age
	for i := range s.mail {
		s.mail[i].born = -9
	}
	for cookie, o := range s.cookies {
		s.cookies[cookie] = origin{o.server, -9}
	}
}

// admit returns what decides on clients. It keeps nothing: copies of a scene
// share it.
func (s *scene) admit() func(Request) ([]byte, error) {
	if s.mode == "refused" {
		return func(Request) ([]byte, error) { return nil, errors.New("no") }
	}
	return nil
}

// pend is Admit while a backend is asked.
func pend(Request) ([]byte, error) { return nil, ErrPending }

func (s *scene) restartClient() {
	s.clients++
	var err error
	s.client, err = NewClient(ClientConfig{
		ServerKey: sceneKey.PublicKey(), Clock: s.clock, Rand: rand.NewChaCha8([32]byte{2, byte(s.clients)}),
		Hello: []byte{byte(s.clients)}, Timeout: 20 * time.Hour, Session: ackbits.Config{Timeout: sceneTimeout},
	})
	must(err)
	s.whose[s.client.key] = s.clients
	s.session = 0
}

// step is something that may happen.
type step struct {
	name string
	do   func(*scene)
}

// steps returns what may happen in a state.
func (s *scene) steps() (all []step) {
	if len(s.mail) < s.bounds.wire && s.client.Err() == nil {
		all = append(all, step{"client speaks", (*scene).speak})
	}
	for i, l := range s.mail {
		name := fmt.Sprintf("%s of client %d", letterName(l.data), l.client)
		all = append(all,
			step{"arrives: " + name, func(s *scene) {
				l := s.mail[i]
				s.mail = slices.Delete(s.mail, i, i+1)
				s.arrive(&l)
			}},
			step{"arrives and is doubled: " + name, func(s *scene) { s.arrive(&s.mail[i]) }},
			step{"is lost: " + name, func(s *scene) { s.mail = slices.Delete(s.mail, i, i+1) }},
		)
	}
	for i, l := range s.mail {
		if s.mode == "pending" && l.toServer {
			all = append(all, step{fmt.Sprintf("arrives while Admit is not decided: %s of client %d", letterName(l.data), l.client), func(s *scene) {
				l := s.mail[i]
				s.mail = slices.Delete(s.mail, i, i+1)
				s.server.gate.cfg.Admit = pend
				s.arrive(&l)
				s.server.gate.cfg.Admit = nil
			}})
		}
	}
	all = append(all, step{"ten seconds pass", (*scene).pass})
	if s.runs <= s.bounds.servers {
		all = append(all, step{"server restarts", (*scene).restartServer})
	}
	if s.clients <= s.bounds.clients {
		all = append(all, step{"client restarts", (*scene).restartClient})
	}
	return all
}

// speak has the client say what it would say in a while: its Hello, or a
// datagram of its session.
func (s *scene) speak() {
	l := letter{toServer: true, client: s.client.number()}
	if s.client.session != nil {
		d, _, err := s.client.session.AppendDatagram(nil, ackbits.TypeInput, nil)
		must(err)
		l.data, l.server, l.born = d, s.session, 0
		s.post(l)
		return
	}
	s.client.nextAt = 0
	for d := range s.client.Due(make([]byte, ackbits.MaxDatagramSize)) {
		l.data = slices.Clone(d)
		made := s.cookies[[cookieSize]byte(d[4+keySize:])] // of a bare one none
		l.server, l.born = made.server, made.slot
		s.post(l)
	}
}

// number returns the client's number, which is its hello.
func (c *Client) number() int { return int(c.cfg.Hello[0]) }

// post puts a message in flight; beyond the bound it is lost.
func (s *scene) post(l letter) {
	if len(s.mail) < s.bounds.wire {
		l.sent = s.passed
		s.mail = append(s.mail, l)
	}
}

// arrive hands a message in.
func (s *scene) arrive(l *letter) {
	data := slices.Clone(l.data)
	k, isHandshake := handshakeKind(data)
	if !l.toServer {
		if l.client != s.client.number() {
			return // its reader is gone
		}
		s.client.Receive(data)
		if isHandshake && k == kindAccept && s.client.session != nil && s.session == 0 {
			s.session = l.server
			s.played[fmt.Sprint("client ", l.client, " at server ", l.server)] = true
		}
		if s.client.Err() != nil && !isHandshake {
			return
		}
		s.blame(k == kindReset && s.client.Err() == ErrReset && s.lives(), "a Reset of a session that lives")
		return
	}
	in, _ := s.server.Receive(sceneAddr, data)
	if in.Peer != nil {
		s.heardAt[in.Peer.token] = s.slot
		s.blame(l.opened, "a datagram opened twice")
		l.opened = true
	}
	s.answers(len(l.data), l.client)
}

// lives reports whether the client's session lives at the server.
func (s *scene) lives() bool {
	return s.client.session != nil && s.server.byToken[s.client.token] != nil
}

func (s *scene) blame(fault bool, text string) {
	if fault {
		s.faults = append(s.faults, text)
	}
}

// answers takes what the server sends after a message of n bytes. What its
// sessions send arrives at once: here it is the handshake that is tried.
func (s *scene) answers(n, client int) {
	for _, d := range s.due() {
		k, isHandshake := handshakeKind(d)
		if !isHandshake {
			if binary.LittleEndian.Uint64(d[2:]) == s.client.token { // not one of a client that was there before
				s.client.Receive(d)
			}
			continue
		}
		s.blame(len(d) > n, fmt.Sprintf("%d bytes drew %d", n, len(d)))
		born := int64(0)
		if k == kindChallenge {
			born = s.slot
			s.cookies[[cookieSize]byte(d[67:])] = origin{s.runs, born}
		}
		s.post(letter{data: d, client: client, server: s.runs, born: born})
	}
	for e, ok := s.server.NextEvent(); ok; e, ok = s.server.NextEvent() {
		if e.Kind == Joined {
			name := fmt.Sprint("client ", e.Peer.hello[0], " at server ", s.runs)
			s.joins[name]++
			// One that never got its Accept may be admitted anew, once it is
			// forgotten and still asks; one that played never.
			s.blame(s.played[name], name+" was admitted again after it had played")
			s.blame(s.joins[name] > 1 && s.forgottenAt[name] > s.slot, name+" was admitted again while it is remembered")
			s.forgottenAt[name] = 1 << 40
			s.heardAt[e.Peer.token] = s.slot
		}
		if e.Kind == Left {
			s.forgottenAt[fmt.Sprint("client ", e.Peer.hello[0], " at server ", s.runs)] = s.slot + 2
		}
		s.blame(e.Kind == Moved, "a move")
	}
}

func (s *scene) due() (all [][]byte) {
	for _, d := range s.server.Due(make([]byte, ackbits.MaxDatagramSize)) {
		all = append(all, slices.Clone(d))
	}
	return all
}

// pass lets a slot pass. What the clocks make due, timeouts apart, is lost, and
// so is what was in flight for longer than a cookie is good: beyond that, by
// the contract, clients are forgotten.
func (s *scene) pass() {
	s.clock.Advance(cookieSlot)
	s.slot++
	s.passed++
	s.mail = slices.DeleteFunc(s.mail, func(l letter) bool { return s.passed-l.sent > int(cookieLife/cookieSlot) })
	s.answers(0, 0)
	if s.client.session != nil {
		for range s.client.session.Due(make([]byte, ackbits.MaxDatagramSize)) {
		}
	}
}

// age is how many slots have passed, as far as it matters.
func (s *scene) age(born int64) int64 { return min(s.slot-born, 2) }

// key names a state: all that decides what can happen from here on.
func (s *scene) key() string {
	var b strings.Builder
	c := s.client
	fmt.Fprint(&b, "runs ", s.runs, " clients ", s.clients, " client")
	switch {
	case c.Err() != nil:
		fmt.Fprint(&b, " ended ", c.Err())
	case c.session != nil:
		fmt.Fprint(&b, " joined ", s.session, s.lives())
	default:
		now := c.time.Now + int64(s.clock.Now().Sub(c.time.Last))
		dead := false
		for i, o := range c.knocks.offers {
			made := s.cookies[o.cookie]
			if made.server == s.runs && s.age(made.slot) < 2 {
				fmt.Fprint(&b, " cookie ", s.age(made.slot), i < c.knocks.urgent, now-o.shownAt < helloInterval)
				continue
			}
			// Of cookies that are good for nothing any more one is as good as several: a
			// Hello that shows another of them does what one that is lost does.
			if !dead {
				fmt.Fprint(&b, " dead cookie ", i < c.knocks.urgent)
			}
			dead = true
		}
	}
	var known []string
	for _, m := range s.server.gate.memory.byKey {
		age := int64(-1)
		if m.standing.live() {
			age = s.slot - s.heardAt[m.token]
		} else {
			age = max(0, m.until-s.server.gate.time.Now) / int64(cookieSlot)
		}
		known = append(known, fmt.Sprint(s.whose[m.key], m.standing, age, m.quietUntil > s.server.gate.time.Now))
	}
	slices.Sort(known)
	var wire []string
	for _, l := range s.mail {
		wire = append(wire, fmt.Sprint(letterName(l.data), s.tells(l.data), l.toServer, l.client, l.server, s.age(l.born), s.passed-l.sent, l.opened))
	}
	slices.Sort(wire)
	fmt.Fprint(&b, known, wire, s.played)
	return b.String()
}

func letterName(d []byte) string {
	if k, ok := handshakeKind(d); ok {
		return [...]string{"?", "Hello", "Challenge", "Accept", "Refuse", "Reset", "Probe", "ProbeReply"}[k]
	}
	return "session"
}

// tells says what the token of a session's datagram, or of a Reset, means now.
func (s *scene) tells(d []byte) string {
	if k, ok := handshakeKind(d); ok && k != kindReset {
		return ""
	}
	token := binary.LittleEndian.Uint64(d[2:])
	return fmt.Sprint(s.client.session != nil && s.client.token == token, s.server.byToken[token] != nil)
}

// check returns what is wrong with a state; nothing, it is hoped.
func (s *scene) check() []string {
	faults := slices.Clone(s.faults)
	live := 0
	for range s.server.byToken {
		live++
	}
	if live != s.server.gate.seats || live > s.clients {
		faults = append(faults, fmt.Sprint(live, " sessions on ", s.server.gate.seats, " seats of ", s.clients, " clients"))
	}
	if err := s.client.Err(); err != nil && err != ErrReset && err != ackbits.ErrTimeout && !(s.mode == "refused" && errors.Is(err, ErrRefused)) {
		faults = append(faults, "the client ended: "+err.Error())
	}
	if fault := clone(s).heal(); fault != "" {
		faults = append(faults, fault)
	}
	return faults
}

// heal has the path carry everything from now on, and returns what is missing
// then: a client that plays.
func (s *scene) heal() string {
	s.mail = nil
	for i := range 8 {
		s.clock.Advance(time.Duration(helloInterval))
		// A client that a server has given up gets no answer until its Timeout.
		if s.client.Err() != nil && s.mode != "refused" || i == 4 && s.client.session == nil {
			s.restartClient()
		}
		s.speak()
		for len(s.mail) > 0 {
			l := s.mail[0]
			s.mail = s.mail[1:]
			s.arrive(&l)
		}
	}
	if s.mode == "refused" {
		if !errors.Is(s.client.Err(), ErrRefused) {
			return fmt.Sprint("the client is not refused once the path heals: ", s.client.Err())
		}
		return ""
	}
	switch {
	case s.client.session == nil || s.client.Err() != nil:
		return fmt.Sprint("the client does not play once the path heals: ", s.client.Err())
	case !s.lives():
		return "the client plays to nobody once the path heals"
	case s.server.byToken[s.client.token].session.Stats().DatagramsReceived == 0:
		return "the server does not hear the client once the path heals"
	case s.client.session.Stats().Rejected > 0:
		return "the client's session refuses what the server sends"
	}
	return ""
}

// story is how a state was reached.
type story struct {
	scene *scene
	last  string
	from  *story
}

func (s *story) String() string {
	if s.from == nil {
		return "at the beginning"
	}
	return s.from.String() + "\n" + s.last
}

// The short form follows the first states only; ACKBITS_WORLDS=all walks through
// all of them, which takes minutes.
// P-13.2.7.
func TestHandshakeInEveryOrder(t *testing.T) {
	limit := 500
	if testing.Short() {
		limit = 100
	}
	if os.Getenv("ACKBITS_WORLDS") == "all" {
		limit = 1 << 30
	}
	for _, mode := range []string{"admitted", "refused", "pending"} {
		for _, b := range []bounds{{2, 1, 0}, {2, 0, 1}, {1, 1, 1}} {
			t.Run(fmt.Sprint(mode, b), func(t *testing.T) { explore(t, newScene(mode, b), limit) })
		}
	}
}

// explore walks through all states that can be reached from one, until there are
// no others, or limit of them were seen.
func explore(t *testing.T, start *scene, limit int) {
	first := &story{scene: start}
	seen := map[string]bool{start.key(): true}
	steps, todo := 0, []*story{first}
	for ; len(todo) > 0 && len(seen) < limit; todo = todo[1:] {
		from := todo[0]
		for _, next := range from.scene.steps() {
			s := clone(from.scene)
			next.do(s)
			steps++
			if key := s.key(); !seen[key] {
				seen[key] = true
				to := &story{s, next.name, from}
				require.Empty(t, s.check(), "%v", to)
				todo = append(todo, to)
			}
		}
		from.scene = nil
	}
	t.Logf("%d states, %d steps, %d states not followed", len(seen), steps, len(todo))
}

package simnet

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// netModel is a dumb Net: a list of members and one of datagrams, each with the times
// at which it leaves one link and the next. Links only delay, since what else they do
// is tested with Link.
type netModel struct {
	net         *Net
	log         *[]string // what the members received
	members     []*member
	sent        []*datagramSent
	want        []string
	unreachable int
	left        map[netip.AddrPort]bool // somebody moved away, and nobody came
	count       int                     // of datagrams sent
}

type member struct {
	*gossip
	addr     netip.AddrPort
	up, down time.Duration
	alive    bool
}

type datagramSent struct {
	from, to        netip.AddrPort
	leaves, arrives time.Duration
	receiver        *member // nil until it has left the up link
	text            string
}

func newNetModel() *netModel {
	return &netModel{net: NewNet(1, &manual{epoch}), log: new([]string), left: map[netip.AddrPort]bool{}}
}

// at returns who has an address.
func (m *netModel) at(addr netip.AddrPort) *member {
	for _, who := range m.members {
		if who.alive && who.addr == addr {
			return who
		}
	}
	return nil
}

func (m *netModel) add(addr netip.AddrPort, up, down time.Duration) {
	clock := m.net.clock.(*manual)
	who := &member{&gossip{name: fmt.Sprint("m", len(m.members)), clock: clock, log: m.log}, addr, up, down, true}
	m.members = append(m.members, who)
	m.left[addr] = false
	m.net.Add(addr, who, Config{Delay: up}, Config{Delay: down})
}

func (m *netModel) send(t *rapid.T, from, to netip.AddrPort) {
	d := &datagramSent{from: from, to: to, leaves: m.net.Now(), text: fmt.Sprint("number ", m.count)}
	if who := m.at(from); who != nil {
		d.leaves += who.up
	}
	m.count++
	m.sent = append(m.sent, d)
	if m.left[from] {
		require.Panics(t, func() { m.net.Send(from, to, []byte(d.text)) })
		m.net.Spoof(from, to, []byte(d.text))
	} else {
		m.net.Send(from, to, []byte(d.text))
	}
	if m.at(from) == nil {
		m.forward() // a stranger's enters the down link at once
	}
}

// forward moves what leaves an up link now on to its receiver.
func (m *netModel) forward() {
	left := m.sent[:0:0]
	for _, d := range m.sent {
		if d.receiver == nil && d.leaves <= m.net.Now() {
			if d.receiver = m.at(d.to); d.receiver == nil {
				m.unreachable++
				continue
			}
			d.arrives = d.leaves + d.receiver.down
		}
		left = append(left, d)
	}
	m.sent = left
}

// deliver takes what arrives now.
func (m *netModel) deliver() {
	left := m.sent[:0:0]
	for _, d := range m.sent {
		switch {
		case d.receiver == nil || d.arrives > m.net.Now():
			left = append(left, d)
		case !d.receiver.alive || d.receiver.addr != d.to:
			m.unreachable++
		default:
			m.want = append(m.want, fmt.Sprintf("%v %s got %s from %v", d.arrives, d.receiver.name, d.text, d.from))
		}
	}
	m.sent = left
}

func TestNetIsWhatItsDocSays(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) netip.AddrPort { return Addr(rapid.IntRange(0, 3).Draw(t, "address")) })
	delay := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(1, 5).Draw(t, "ms")) * ms })
	rapid.Check(t, func(t *rapid.T) {
		m := newNetModel()
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				if addr := address.Draw(t, "addr"); m.at(addr) == nil {
					m.add(addr, delay.Draw(t, "up"), delay.Draw(t, "down"))
				} else {
					require.Panics(t, func() { m.net.Add(addr, nil, Config{}, Config{}) })
				}
			},
			"remove": func(t *rapid.T) {
				if who := m.at(address.Draw(t, "addr")); who != nil {
					who.alive = false
					m.net.Remove(who.addr)
				}
			},
			"move": func(t *rapid.T) {
				who, to := m.at(address.Draw(t, "from")), address.Draw(t, "to")
				if who != nil && m.at(to) == nil {
					m.net.Move(who.addr, to)
					m.left[who.addr], m.left[to] = true, false
					who.addr = to
				}
			},
			"send": func(t *rapid.T) { m.send(t, address.Draw(t, "from"), address.Draw(t, "to")) },
			"pass": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "ms") {
					m.net.Run(m.net.Now() + ms)
					m.forward()
					m.deliver()
				}
			},
			"": func(t *rapid.T) {
				require.ElementsMatch(t, m.want, *m.log)
				require.Equal(t, m.unreachable, m.net.Unreachable())
			},
		})
	})
}

// Package hostile is a client without a game, for tests: it joins as any other does,
// and then does what its caller wants, with the session or with bytes of its own.
package hostile

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// Peer is such a client. It belongs to one goroutine.
type Peer struct {
	Conn                           *net.UDPConn
	Client                         *endpoint.Client
	Hellos                         [][]byte // what it sent to join
	Got                            []ackbits.Event
	BytesIn, BytesOut, DatagramsIn int

	seal, open cipher.AEAD // of the session
	in, out    []byte
}

// Dial opens a socket at a local address, if it is valid, towards a server whose key
// is key.
func Dial(server netip.AddrPort, local netip.Addr, key *ecdh.PublicKey, name string) (*Peer, error) {
	p := &Peer{in: make([]byte, 2048), out: make([]byte, 0, ackbits.MaxDatagramSize)}
	var from *net.UDPAddr
	if local.IsValid() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	var err error
	if p.Conn, err = net.DialUDP("udp", from, net.UDPAddrFromAddrPort(server)); err != nil {
		return nil, err
	}
	p.Client, err = endpoint.NewClient(endpoint.ClientConfig{
		ServerKey: key,
		Hello:     proto.AppendHello(nil, proto.Hello{Version: proto.HelloVersion, Name: name}),
		Session:   ackbits.Config{Adaptive: true, Bundle: true, Backlog: 1024, Timeout: 20 * time.Second},
		AEAD:      p.keep,
	})
	return p, err
}

// keep makes the protection of the session and keeps it: the first is for what
// the client sends, the second for what it gets.
func (p *Peer) keep(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	p.seal, p.open = p.open, aead
	return aead, err
}

// Write sends a datagram as it is.
func (p *Peer) Write(datagram []byte) {
	n, _ := p.Conn.Write(datagram)
	p.BytesOut += n
}

// Read returns the next datagram that arrives within patience, valid until the
// next call; nil if there is none.
func (p *Peer) Read(patience time.Duration) []byte {
	p.Conn.SetReadDeadline(time.Now().Add(patience))
	n, err := p.Conn.Read(p.in)
	if err != nil {
		return nil
	}
	p.BytesIn += n
	p.DatagramsIn++
	return p.in[:n]
}

// Flush sends what is due.
func (p *Peer) Flush() {
	joining := p.Client.Session() == nil
	for datagram := range p.Client.Due(p.out) {
		if joining {
			p.Hellos = append(p.Hellos, append([]byte(nil), datagram...))
		}
		p.Write(datagram)
	}
}

// Run is an honest client for a while, or until it has ended, that keeps what
// events it gets.
func (p *Peer) Run(d time.Duration) error {
	for deadline := time.Now().Add(d); time.Now().Before(deadline) && p.Client.Err() == nil; {
		p.Flush()
		if datagram := p.Read(5 * time.Millisecond); datagram != nil {
			in, _ := p.Client.Receive(datagram)
			for _, e := range in.Events {
				p.Got = append(p.Got, ackbits.Event{ID: e.ID, Data: append([]byte(nil), e.Data...)})
			}
		}
	}
	p.Flush()
	return p.Client.Err()
}

// Join joins, or returns why it was not let in.
func (p *Peer) Join() error {
	for p.Client.Session() == nil {
		if err := p.Run(20 * time.Millisecond); err != nil {
			return err
		}
	}
	p.Input(0)
	return nil
}

// Input sends an input.
func (p *Peer) Input(held byte) {
	if datagram, _, err := p.Client.Session().AppendDatagram(p.out[:0], ackbits.TypeInput, []byte{held}); err == nil {
		p.Write(datagram)
	}
}

// Say sends a line of chat.
func (p *Peer) Say(text string) {
	p.Client.Session().Send(proto.AppendEvent(nil, proto.Event{Kind: proto.Say, At: time.Now(), Text: text}))
}

// Leave ends the session.
func (p *Peer) Leave() {
	p.Client.Session().Close()
	p.Flush()
}

// Seal makes a datagram of the session by hand: the number-th of this side, with
// whatever its header says.
func (p *Peer) Seal(number uint64, h ackbits.Header, payload []byte) []byte {
	h.Sealed, h.Sequence = true, uint16(number)
	head := h.AppendTo(nil)
	return p.seal.Seal(head, nonce(number), payload, head)
}

// Open opens a datagram of the server that is its number-th.
func (p *Peer) Open(number uint64, datagram []byte) (h ackbits.Header, payload []byte, ok bool) {
	h, sealed, err := ackbits.ParseHeader(datagram)
	if err != nil || !h.Sealed {
		return h, nil, false
	}
	payload, err = p.open.Open(nil, nonce(number), sealed, datagram[:ackbits.HeaderSize])
	return h, payload, err == nil
}

func nonce(number uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4), number) }

// Token returns the session's token, which the header of what it sends shows.
func (p *Peer) Token() uint64 {
	datagram, _, err := p.Client.Session().AppendDatagram(p.out[:0], ackbits.TypeInput, []byte{0})
	if err != nil {
		return 0
	}
	p.Write(datagram)
	h, _, _ := ackbits.ParseHeader(datagram)
	return h.Token
}

// Close closes the socket.
func (p *Peer) Close() error { return p.Conn.Close() }

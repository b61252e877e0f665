package endpoint_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

var updateVectors = flag.Bool("update-vectors", false, "write testdata/handshake.json anew")

// bits are bytes that JSON shows in hexadecimal.
type bits []byte

func (b bits) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

func (b *bits) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

// digits are a number that JSON shows as the session's vectors do.
type digits uint64

func (d digits) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(d)), nil }

// vector is one handshake, byte for byte.
type vector struct {
	Name string `json:"name"`

	// What is given.
	Wide             bool   `json:"wide"`
	ServerPrivate    bits   `json:"server_private"`
	ClientPrivate    bits   `json:"client_private"`
	EphemeralPrivate bits   `json:"ephemeral_private"`
	CookieSecret     bits   `json:"cookie_secret"`
	ClientAddress    string `json:"client_address"`
	Slot             uint64 `json:"slot"`
	Token            digits `json:"token"`
	Hello            bits   `json:"hello"`
	Reply            bits   `json:"reply,omitempty"`
	Salt             bits   `json:"salt,omitempty"`
	Reason           string `json:"reason,omitempty"`

	// What comes of it.
	Bare       bits `json:"message_hello_bare"`
	Challenge  bits `json:"message_challenge"`
	Sealed     bits `json:"message_hello"`
	Accept     bits `json:"message_accept,omitempty"`
	Refuse     bits `json:"message_refuse,omitempty"`
	Datagram   bits `json:"datagram_client_to_server,omitempty"` // the session's first, of type 3, payload "vector"
	Snapshot   bits `json:"datagram_server_to_client,omitempty"` // likewise, of type 4
	Probe      bits `json:"message_probe,omitempty"`             // its 16 bytes are the server's choice
	ProbeReply bits `json:"message_probe_reply,omitempty"`
	Reset      bits `json:"message_reset,omitempty"`

	Cookie    bits `json:"cookie"`
	HelloKey  bits `json:"key_hello"`
	AcceptKey bits `json:"key_accept,omitempty"`
	RefuseKey bits `json:"key_refuse,omitempty"`
	ToServer  bits `json:"key_client_to_server,omitempty"`
	ToClient  bits `json:"key_server_to_client,omitempty"`
	ProbeKey  bits `json:"key_probe,omitempty"`
	ResetKey  bits `json:"key_reset,omitempty"`
}

func count(from, n int) (b bits) {
	for i := range n {
		b = append(b, byte(from+i))
	}
	return b
}

// given returns the inputs of all vectors.
func given() []vector {
	v := vector{
		Name: "accept", ServerPrivate: count(0, 32), ClientPrivate: count(32, 32), EphemeralPrivate: count(64, 32), CookieSecret: count(96, 32),
		ClientAddress: "198.51.100.7:4000", Token: 0x0807060504030201, Hello: bits("ann"), Reply: bits("welcome"),
	}
	wide := v
	wide.Name, wide.Wide, wide.ClientAddress, wide.Slot, wide.Hello, wide.Reply = "accept, wide, IPv6, in the third slot, nothing said", true, "[2001:db8::7]:4000", 2, nil, nil
	long := v
	long.Name, long.Hello, long.Reply = "accept, as long as can be", count(0, 512), count(1, 512)
	refuse := v
	refuse.Name, refuse.Reply, refuse.Salt, refuse.Reason = "refuse", nil, count(128, 16), "banned"
	return []vector{v, wide, long, refuse}
}

// play fills in the messages, by the package.
func (v *vector) play(t *testing.T) {
	private, err := ecdh.X25519().NewPrivateKey(v.ServerPrivate)
	require.NoError(t, err)
	from := netip.MustParseAddrPort(v.ClientAddress)
	token := binary.LittleEndian.AppendUint64(nil, uint64(v.Token))
	var clock ackbits.ManualClock
	cfg := endpoint.ServerConfig{
		Key: private, Clock: &clock, Session: ackbits.Config{Wide: v.Wide},
		Rand: bytes.NewReader(bytes.Join([][]byte{v.CookieSecret, count(160, 32), v.EphemeralPrivate, token, v.Salt}, nil)),
		Admit: func(endpoint.Request) ([]byte, error) {
			if v.Reason != "" {
				return nil, errors.New(v.Reason)
			}
			return v.Reply, nil
		},
	}
	s, err := endpoint.NewServer(cfg)
	require.NoError(t, err)
	clock.Advance(time.Duration(v.Slot) * 10 * time.Second)
	c, err := endpoint.NewClient(endpoint.ClientConfig{
		ServerKey: private.PublicKey(), Hello: v.Hello, Clock: &clock, Session: ackbits.Config{Wide: v.Wide}, Rand: bytes.NewReader(v.ClientPrivate),
	})
	require.NoError(t, err)
	toServer := func(from netip.AddrPort, d []byte) { s.Receive(from, bytes.Clone(d)) }
	next := func() bits { return first(s, c) }
	v.Bare = next()
	toServer(from, v.Bare)
	v.Challenge = next()
	c.Receive(bytes.Clone(v.Challenge))
	v.Sealed = next()
	toServer(from, v.Sealed)
	if v.Reason != "" {
		v.Refuse = next()
		c.Receive(v.Refuse)
		require.ErrorIs(t, c.Err(), endpoint.ErrRefused)
		return
	}
	v.Accept = next()
	c.Receive(bytes.Clone(v.Accept))
	require.NotNil(t, c.Session())
	v.Datagram, _, err = c.Session().AppendDatagram(nil, ackbits.TypeInput, []byte("vector"))
	require.NoError(t, err)
	e, _ := s.NextEvent()
	v.Snapshot, _, err = e.Peer.Session().AppendDatagram(nil, ackbits.TypeSnapshot, []byte("vector"))
	require.NoError(t, err)
	toServer(address(elsewhere), v.Datagram)
	v.Probe = next()
	c.Receive(v.Probe)
	v.ProbeReply = next()
	toServer(address(elsewhere), v.ProbeReply)
	require.Equal(t, address(elsewhere), e.Peer.Addr())
	v.restart(t, cfg, c)
}

// first returns the first datagram that is due, of either side.
func first(s *endpoint.Server, c *endpoint.Client) bits {
	for _, d := range s.Due(make([]byte, 1200)) {
		return bytes.Clone(d)
	}
	for d := range c.Due(make([]byte, 1200)) {
		return bytes.Clone(d)
	}
	return nil
}

// restart has a server with the same key, and nothing else, answer the datagram.
func (v *vector) restart(t *testing.T, cfg endpoint.ServerConfig, c *endpoint.Client) {
	cfg.Rand = bytes.NewReader(make([]byte, 64))
	s, err := endpoint.NewServer(cfg)
	require.NoError(t, err)
	s.Receive(address(elsewhere), bytes.Clone(v.Datagram))
	v.Reset = first(s, c)
	c.Receive(bytes.Clone(v.Reset))
	require.ErrorIs(t, c.Err(), endpoint.ErrReset)
}

// What follows is the handshake by the package comment alone, with none of the
// package's code: HKDF of RFC 5869 by hand, and everything else where it is said
// to be.

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func hkdf(secret, salt []byte, info ...[]byte) []byte {
	if len(salt) == 0 {
		salt = make([]byte, 32)
	}
	return mac(mac(salt, secret), append(info, []byte{1})...)
}

func unbox(t *testing.T, key, message []byte, head int) []byte {
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	plain, err := gcm.Open(nil, make([]byte, 12), message[head:], message[:head])
	require.NoError(t, err)
	return plain
}

func x25519(t *testing.T, private, public []byte) []byte {
	a, err := ecdh.X25519().NewPrivateKey(private)
	require.NoError(t, err)
	b, err := ecdh.X25519().NewPublicKey(public)
	require.NoError(t, err)
	secret, err := a.ECDH(b)
	require.NoError(t, err)
	return secret
}

func public(t *testing.T, private []byte) []byte {
	key, err := ecdh.X25519().NewPrivateKey(private)
	require.NoError(t, err)
	return key.PublicKey().Bytes()
}

// check reads the messages and fills in the keys, by hand.
func (v *vector) check(t *testing.T) {
	form := byte(0)
	if v.Wide {
		form = 1
	}
	client, server := public(t, v.ClientPrivate), public(t, v.ServerPrivate)
	bound := func(label string) []byte {
		return bytes.Join([][]byte{[]byte(label), {0, 1, form}, client, server}, nil)
	}
	addr := netip.MustParseAddrPort(v.ClientAddress)
	ip := addr.Addr().As16()
	v.Cookie = mac(v.CookieSecret, ip[:], binary.LittleEndian.AppendUint16(nil, addr.Port()), client, binary.LittleEndian.AppendUint64(nil, v.Slot))

	hello := func(cookie []byte) []byte { return bytes.Join([][]byte{{0x0E, 1, 1, form}, client, cookie}, nil) }
	require.Equal(t, append(hello(make([]byte, 32)), make([]byte, 572)...), []byte(v.Bare))
	require.Equal(t, bytes.Join([][]byte{{0x0E, 2, 1}, client, server, v.Cookie}, nil), []byte(v.Challenge))

	static := x25519(t, v.ClientPrivate, server)
	v.HelloKey = hkdf(static, nil, bound("ackbits endpoint hello"), v.Cookie)
	require.Len(t, v.Sealed, 640)
	require.Equal(t, hello(v.Cookie), []byte(v.Sealed[:68]))
	plain := unbox(t, v.HelloKey, v.Sealed, 68)
	require.Equal(t, len(v.Hello), int(binary.LittleEndian.Uint16(plain)))
	require.Equal(t, append(bytes.Clone(v.Hello), make([]byte, 554-len(v.Hello))...), plain[2:])
	if v.Reason != "" {
		require.Equal(t, append([]byte{0x0E, 4}, v.Salt...), []byte(v.Refuse[:18]))
		v.RefuseKey = hkdf(static, v.Salt, bound("ackbits endpoint refuse"))
		require.Equal(t, v.Reason, string(unbox(t, v.RefuseKey, v.Refuse, 18)))
		return
	}
	v.checkAccept(t, client, server, static, bound)
}

func (v *vector) checkAccept(t *testing.T, client, server, static []byte, bound func(string) []byte) {
	ephemeral := public(t, v.EphemeralPrivate)
	both := append(bytes.Clone(static), x25519(t, v.ClientPrivate, ephemeral)...)
	said := sha256.Sum256(v.Hello)
	v.AcceptKey = hkdf(both, nil, bound("ackbits endpoint accept"), ephemeral, said[:])
	require.Equal(t, append([]byte{0x0E, 3}, ephemeral...), []byte(v.Accept[:34]))
	v.ResetKey = hkdf(v.ServerPrivate, nil, []byte("ackbits endpoint reset\x00"))
	token := binary.LittleEndian.AppendUint64(nil, uint64(v.Token))
	code := mac(v.ResetKey, token)[:16]
	terms := bytes.Join([][]byte{token, code, binary.LittleEndian.AppendUint16(nil, uint16(len(v.Reply))), v.Reply}, nil)
	require.Equal(t, terms, unbox(t, v.AcceptKey, v.Accept, 34))

	whole := sha256.Sum256(v.Accept)
	v.ToServer = hkdf(both, nil, bound("ackbits endpoint client to server"), ephemeral, said[:], whole[:])
	v.ToClient = hkdf(both, nil, bound("ackbits endpoint server to client"), ephemeral, said[:], whole[:])
	v.ProbeKey = hkdf(both, nil, bound("ackbits endpoint probe"), ephemeral, said[:], whole[:])
	head := 18
	if v.Wide {
		head = 22
	}
	require.Equal(t, "vector", string(unbox(t, v.ToServer, v.Datagram, head)), "datagram number 0 has a nonce of zeros")
	require.Equal(t, "vector", string(unbox(t, v.ToClient, v.Snapshot, head)))

	coded := func(kind byte, code []byte) []byte { return bytes.Join([][]byte{{0x0E, kind}, token, code}, nil) }
	require.Equal(t, coded(5, code), []byte(v.Reset))
	require.Len(t, v.Probe, 26)
	require.Equal(t, coded(6, nil), []byte(v.Probe[:10]))
	require.Equal(t, coded(7, mac(v.ProbeKey, v.Probe[10:])[:16]), []byte(v.ProbeReply))
}

// The file says what the package sends, and what one sends that was written from
// the package comment.
// P-13.3.1, P-13.3.2.
func TestVectors(t *testing.T) {
	const file = "testdata/handshake.json"
	vectors := given()
	for i := range vectors {
		vectors[i].play(t)
		vectors[i].check(t)
	}
	text, err := json.MarshalIndent(vectors, "", "\t")
	require.NoError(t, err)
	text = append(text, '\n')
	if *updateVectors {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

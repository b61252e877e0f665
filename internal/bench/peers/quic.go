package peers

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
})

// quicHost is a client's and a server's transport over one Link, as two
// processes would have. Any number of connections can share it.
type quicHost struct {
	link   *Link
	a, b   *quic.Transport
	listen *quic.Listener
	config *quic.Config
	client *tls.Config
}

func newQUICHost() (*quicHost, error) {
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	link := NewLink()
	h := &quicHost{
		link:   link,
		a:      &quic.Transport{Conn: &link.A},
		b:      &quic.Transport{Conn: &link.B},
		config: &quic.Config{MaxIncomingUniStreams: 1024, MaxIdleTimeout: 10 * time.Minute},
		client: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"bench"}},
	}
	h.listen, err = h.b.Listen(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"bench"}}, h.config)
	return h, err
}

func (h *quicHost) connect(ctx context.Context) (a, b *quic.Conn, err error) {
	if a, err = h.a.Dial(ctx, &h.link.B.addr, h.client, h.config); err != nil {
		return nil, nil, err
	}
	if b, err = h.listen.Accept(ctx); err != nil {
		return nil, nil, err
	}
	<-b.HandshakeComplete()
	return a, b, nil
}

func (h *quicHost) Close() error {
	return errors.Join(h.listen.Close(), h.a.Close(), h.b.Close(), h.link.A.Close(), h.link.B.Close())
}

// flow returns the driver of a connection: one stream for all messages, or a
// stream for each.
func (h *quicHost) flow(a, b *quic.Conn, streams bool) (*flow, error) {
	ctx := context.Background()
	f := &flow{link: h.link, end: func() error {
		return errors.Join(a.CloseWithError(0, ""), b.CloseWithError(0, ""))
	}}
	if streams {
		f.write = func(msg []byte) error {
			s, err := a.OpenUniStreamSync(ctx)
			if err != nil {
				return err
			}
			if _, err := s.Write(msg); err != nil {
				return err
			}
			return s.Close()
		}
		var one [1]byte
		f.read = func(buf []byte) error {
			s, err := b.AcceptUniStream(ctx)
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(s, buf); err != nil {
				return err
			}
			if _, err := s.Read(one[:]); err != io.EOF {
				return errors.Join(errors.New("peers: a stream of more than one message"), err)
			}
			return nil
		}
		return f, nil
	}
	out, err := a.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	var in *quic.ReceiveStream // the peer sees the stream once something was written to it
	f.write = func(msg []byte) error { _, err := out.Write(msg); return err }
	f.read = func(buf []byte) (err error) {
		if in == nil {
			if in, err = b.AcceptUniStream(ctx); err != nil {
				return err
			}
		}
		_, err = io.ReadFull(in, buf)
		return err
	}
	return f, nil
}

func quicPair(streams bool) (Pair, error) {
	h, err := newQUICHost()
	if err != nil {
		return nil, err
	}
	a, b, err := h.connect(context.Background())
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	f, err := h.flow(a, b, streams)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	end := f.end
	f.end = func() error { return errors.Join(end(), h.Close()) }
	return f, nil
}

func quicIdle(n int, streams bool) (io.Closer, error) {
	h, err := newQUICHost()
	if err != nil {
		return nil, err
	}
	list := make(closers, 0, n+1)
	for range n {
		a, b, err := h.connect(context.Background())
		if err != nil {
			return nil, errors.Join(err, list.Close(), h.Close())
		}
		f, err := h.flow(a, b, streams)
		if err == nil {
			list = append(list, f)
			err = f.Single(1)
		}
		if err != nil {
			return nil, errors.Join(err, list.Close(), h.Close())
		}
	}
	time.Sleep(settle)
	h.link.Trim()
	return append(list, h), nil
}

// settle is how long connections take to say what they still had to: the
// longest delay of an acknowledgement among them is SCTP's 200 ms.
const settle = 400 * time.Millisecond

func quicSubjects() []Subject {
	const does = "encrypts (TLS 1.3), congestion control, flow control, goroutines; acknowledges every second datagram"
	subject := func(name, settings string, streams bool) Subject {
		return Subject{
			Name:     name,
			Module:   "github.com/quic-go/quic-go",
			Settings: settings,
			Does:     does,
			New:      func() (Pair, error) { return quicPair(streams) },
			Idle:     func(n int) (io.Closer, error) { return quicIdle(n, streams) },
		}
	}
	return []Subject{
		subject("quic-go, one stream", "defaults, on a `net.PacketConn` in memory", false),
		subject("quic-go, a stream per message", "the same, MaxIncomingUniStreams 1024", true),
	}
}

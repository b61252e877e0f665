package peers

import (
	"errors"
	"io"
	"time"

	"github.com/pion/sctp"
)

type sctpPair struct{ *flow }

func openSCTP() (*sctpPair, error) {
	link := NewLink()
	client := make(chan error, 1)
	options := func(end *LinkEnd) sctp.AssociationOption { return sctp.WithNetConn(end) }
	var a *sctp.Association
	go func() {
		var err error
		a, err = sctp.ClientWithOptions(options(&link.A), sctp.WithEnableZeroChecksum(true), sctp.WithRTOMax(250))
		client <- err
	}()
	b, err := sctp.ServerWithOptions(options(&link.B), sctp.WithEnableZeroChecksum(true), sctp.WithRTOMax(250))
	if err = errors.Join(err, <-client); err != nil {
		return nil, err
	}
	out, err := a.OpenStream(1, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		return nil, err
	}
	out.SetReliabilityParams(true, sctp.ReliabilityTypeReliable, 0)

	var in *sctp.Stream
	f := &flow{link: link}
	f.write = func(msg []byte) error { _, err := out.Write(msg); return err }
	f.read = func(buf []byte) (err error) {
		if in == nil {
			if in, err = b.AcceptStream(); err != nil {
				return err
			}
		}
		n, err := in.Read(buf)
		if err == nil && n != len(buf) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	f.end = func() error {
		return errors.Join(a.Close(), b.Close())
	}
	return &sctpPair{flow: f}, nil
}

func sctpIdle(n int) (io.Closer, error) {
	list := make(closers, 0, n)
	links := make([]*Link, 0, n)
	for range n {
		p, err := openSCTP()
		if err == nil {
			list = append(list, p)
			links = append(links, p.link)
			err = p.Single(1)
		}
		if err != nil {
			return nil, errors.Join(err, list.Close())
		}
	}
	time.Sleep(settle)
	for _, l := range links {
		l.Trim()
	}
	return list, nil
}

func sctpSubjects() []Subject {
	return []Subject{{
		Name:     "pion/sctp, unordered",
		Module:   "github.com/pion/sctp",
		Settings: "unordered and reliable, zero checksum, RTO max 250 ms, on a `net.Conn` in memory",
		Does:     "congestion control, flow control, fragmentation, goroutines; acknowledges every second datagram; no encryption",
		New: func() (Pair, error) {
			p, err := openSCTP()
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		Idle: sctpIdle,
	}}
}

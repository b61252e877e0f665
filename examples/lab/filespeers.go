package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/pion/sctp"
	"github.com/quic-go/quic-go"
	"github.com/xtaci/kcp-go/v5"
)

// The file beside the game by what one would take instead.

// QUIC.

type fileQUIC struct {
	*quicConn
	events [2]*quic.SendStream
}

func openFileQUIC(g *fileGame) (fileConn, error) {
	c, err := dialQUIC(g.links)
	if err != nil {
		return nil, err
	}
	f := &fileQUIC{quicConn: c}
	for i, end := range c.ends {
		if f.events[i], err = end.OpenUniStream(); err != nil {
			return nil, err
		}
		go func() {
			for {
				payload, err := end.ReceiveDatagram(context.Background())
				if err != nil {
					return
				}
				g.state(i, payload)
			}
		}()
		go func() {
			in, err := end.AcceptUniStream(context.Background())
			go func() { // the file, if it comes
				if in, err := end.AcceptUniStream(context.Background()); err == nil {
					g.read(in)
				}
			}()
			event := make([]byte, 64)
			for err == nil {
				if _, err = io.ReadFull(in, event); err == nil {
					g.event(i, event)
				}
			}
		}()
	}
	return f, nil
}

func (f *fileQUIC) state(from int, payload []byte) error {
	_ = f.ends[from].SendDatagram(payload) // what does not fit its queue is lost
	return nil
}

func (f *fileQUIC) event(from int, payload []byte) error {
	_, err := f.events[from].Write(payload)
	return err
}

func (f *fileQUIC) file(content []byte) error {
	s, err := f.ends[1].OpenUniStream()
	if err != nil {
		return err
	}
	go func() {
		_, _ = s.Write(content)
		_ = s.Close()
	}()
	return nil
}

// KCP.

type fileKCP struct {
	mu   sync.Mutex
	game *fileGame
	ends [2][2]*kcp.KCP // by end; events and file
	left []byte
}

// The conversations, and what a bare state begins with in their place.
const (
	kcpEvents, kcpFile = 1, 2
	kcpState           = 0xffffffff
)

func openFileKCP(g *fileGame, fast int) (fileConn, error) {
	c := &fileKCP{game: g}
	buf := make([]byte, 64<<10)
	for i := range c.ends {
		for k := range c.ends[i] {
			end := kcp.NewKCP(uint32(kcpEvents+k), func(buf []byte, size int) { g.links[i].send(buf[:size]) })
			end.SetMtu(1200)
			if k == 0 {
				end.NoDelay(1, 10, 2, 1)
			} else {
				end.NoDelay(fast, 10, 2, fast)
			}
			end.WndSize(256, 256)
			c.ends[i][k] = end
		}
		g.links[i].arrive = func(datagram []byte) {
			c.mu.Lock()
			defer c.mu.Unlock()
			conversation := binary.LittleEndian.Uint32(datagram)
			if conversation == kcpState {
				g.state(i, datagram[4:])
				return
			}
			end := c.ends[i][conversation-kcpEvents]
			end.Input(datagram, kcp.IKCP_PACKET_REGULAR, true)
			for n := end.Recv(buf); n >= 0; n = end.Recv(buf) {
				if conversation == kcpEvents {
					g.event(i, buf[:n])
				} else {
					g.part(buf[:n])
				}
			}
			c.feed()
			end.Update()
		}
	}
	return c, nil
}

func (c *fileKCP) state(from int, payload []byte) error {
	c.game.links[from].send(append(binary.LittleEndian.AppendUint32(nil, kcpState), payload...))
	return nil
}

func (c *fileKCP) event(from int, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[from][0].Send(payload) < 0 {
		return errors.New("kcp: Send failed")
	}
	return nil
}

func (c *fileKCP) file(content []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = content
	c.feed()
	return nil
}

func (c *fileKCP) feed() {
	for end := c.ends[1][1]; len(c.left) > 0 && end.WaitSnd() < 512; {
		n := min(1024, len(c.left))
		end.Send(c.left[:n])
		c.left = c.left[n:]
	}
}

func (c *fileKCP) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.ends {
		end[0].Update()
		end[1].Update()
	}
}

func (c *fileKCP) close() {}

// SCTP.

type fileSCTP struct {
	*sctpConn
	states, events [2]*sctp.Stream
}

func openFileSCTP(g *fileGame) (fileConn, error) {
	c, err := dialSCTP(g.links)
	if err != nil {
		return nil, err
	}
	f := &fileSCTP{sctpConn: c}
	for i, end := range c.ends {
		for id, use := range []struct {
			stream **sctp.Stream
			take   func(message []byte)
		}{
			{&f.states[i], func(m []byte) { g.state(i, m) }},
			{&f.events[i], func(m []byte) { g.event(i, m) }},
			{&c.streams[i], g.part},
		} {
			s, err := end.OpenStream(uint16(id+1), sctp.PayloadTypeWebRTCBinary)
			if err != nil {
				return nil, err
			}
			*use.stream = s
			go func() {
				message := make([]byte, 64<<10)
				for {
					n, err := s.Read(message)
					if err != nil {
						return
					}
					use.take(message[:n])
				}
			}()
		}
		f.states[i].SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 0)
	}
	return f, nil
}

func (f *fileSCTP) state(from int, payload []byte) error {
	_, err := f.states[from].Write(payload)
	return err
}

func (f *fileSCTP) event(from int, payload []byte) error {
	_, err := f.events[from].Write(payload)
	return err
}

func (f *fileSCTP) file(content []byte) error {
	for len(content) > 0 {
		n := min(1024, len(content))
		if _, err := f.streams[1].Write(content[:n]); err != nil {
			return err
		}
		content = content[n:]
	}
	return nil
}

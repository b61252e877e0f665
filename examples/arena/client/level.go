package client

import (
	"errors"
	"fmt"
	"io"

	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/transfer"
)

// ErrMap: the map could not be had from the server.
var ErrMap = errors.New("the map did not come")

// Level is the map of a server, as far as it has arrived. It outlives the clients that
// fetch it: pass the same one to the next client, and what has arrived once is not sent
// again, as long as the server has the same map. The zero value is an empty one.
type Level struct {
	bytes   memoryFile
	offer   transfer.Offer     // of bytes
	latest  *transfer.Incoming // the attempt that fills bytes, nil before the first
	checked *game.Map          // the whole map, once its digest was right
}

// memoryFile is a file of a fixed size in memory.
type memoryFile []byte

func (f memoryFile) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(f)) {
		return 0, io.EOF
	}
	n := copy(b, f[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f memoryFile) WriteAt(b []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(f)) {
		return 0, io.ErrShortWrite
	}
	n := copy(f[at:], b)
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// Map returns the map, nil before all of it is there and its digest is right.
func (l *Level) Map() *game.Map { return l.checked }

// Progress returns how many bytes have arrived, of how many; size is 0 before the
// server has offered the map.
func (l *Level) Progress() (done, size int64) {
	if l.latest == nil {
		return 0, l.offer.Size
	}
	return l.latest.Progress()
}

// Arriving returns what there is of the map, to be shown: nil before any. What it shows
// is not checked until Map returns it.
func (l *Level) Arriving() *game.Map {
	if l.bytes == nil {
		return nil
	}
	return game.Arriving(l.bytes)
}

// accept decides on what a server offers: one map, of the size that maps have.
func (l *Level) accept(o transfer.Offer) (transfer.Sink, error) {
	if string(o.Name) != proto.MapName || o.Size != game.MapSize {
		return nil, fmt.Errorf("a map has %d bytes", game.MapSize)
	}
	if l.bytes == nil || o.Digest != l.offer.Digest {
		*l = Level{bytes: make(memoryFile, game.MapSize)}
	}
	l.offer = o
	return l.bytes, nil
}

// resume says what there is already. The attempt that it asks is of an earlier session.
func (l *Level) resume(transfer.Offer) []byte {
	if l.latest == nil {
		return nil
	}
	return l.latest.Have()
}

// finish reads the map once all of it is there.
func (l *Level) finish() error {
	if l.checked != nil {
		return nil // an earlier session has brought it, and it was found right again
	}
	var err error
	if l.checked, err = game.ParseMap(l.bytes); err != nil {
		*l = Level{}
		return fmt.Errorf("%w: %w", ErrMap, err)
	}
	return nil
}

// fetching is a client's part of a transfer of the map: one for each session.
type fetching struct {
	level *Level              // nil: no map is wanted
	files *transfer.Transfers // nil before the session, and when nothing has to be said any more
	asked bool                // the map was offered in this session
	in    *transfer.Incoming  // nil before it was
}

// begin is called when the session begins.
func (f *fetching) begin(c *Client) (err error) {
	if f.level == nil {
		return nil
	}
	f.files, err = transfer.New(c.session, transfer.Config{
		Type:   proto.TypeMap,
		Clock:  c.cfg.Clock,
		Accept: f.accept,
		Resume: f.level.resume,
	})
	return err
}

func (f *fetching) accept(o transfer.Offer) (transfer.Sink, error) {
	if f.asked {
		return nil, errors.New("the map is here already")
	}
	f.asked = true
	return f.level.accept(o)
}

// receive processes a datagram of the map. What comes after its end is a repetition.
func (f *fetching) receive(payload []byte) error {
	switch {
	case f.files != nil:
		return f.files.Receive(payload)
	case f.in != nil:
		return nil
	}
	return proto.ErrMalformed
}

// flush sends what is due of the transfer, and reads the map at its end. An error
// means that there will be no map.
func (f *fetching) flush(c *Client) error {
	if f.level == nil || c.session == nil {
		return nil
	}
	for o, ok := c.session.NextOutcome(); ok; o, ok = c.session.NextOutcome() {
		if f.files != nil {
			f.files.Outcome(o)
		}
	}
	if f.files == nil {
		return nil
	}
	for datagram := range f.files.Due(c.buf) {
		c.cfg.Send(datagram)
	}
	for in := range f.files.Incoming() {
		if f.in == nil && in.Err() == nil || in == f.in {
			f.in, f.level.latest = in, in
		}
		switch err := in.Err(); {
		case in != f.in || err == nil:
		case err == io.EOF:
			if err := f.level.finish(); err != nil {
				return err
			}
		case c.session.Err() == nil:
			return fmt.Errorf("%w: %w", ErrMap, err)
		}
	}
	if f.in != nil && f.in.Err() == io.EOF && f.files.Idle() {
		f.files = nil
	}
	return nil
}

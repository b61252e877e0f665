package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// The wire form of chunks and messages: writing and parsing. What they cause is in
// transfer.go, outgoing.go and incoming.go.

// The payloads of Config.Type, little-endian (P-14.1.1). The first byte is the kind:
//
//	offer    1  id u16, size u64, digest [32]byte, n u8, name [n]byte,
//	            zeros up to 512 bytes
//	accept   2  id u16, runs               what the receiver has already
//	refuse   3  id u16, reason             up to 255 bytes of text
//	chunk    4  id u16, serial u16, offset u32, data
//	ask      5  as chunk, to be answered at once
//	answer   6  serial u16, arrived u32
//	done     7  id u16, result u8          0: all is there and has the digest; 1: it has another
//	stop     8  id u16, reason             the sender ends the transfer
//	decline  9  id u16, reason             the receiver ends the transfer
//
// id names a transfer among those of its sender, counted from 0. offset counts
// units of 512 bytes (P-14.1.2). data has one unit or two; the last unit of a file is
// shorter if its size is no multiple of 512, and nothing follows it. serial
// numbers the chunks of one side, all transfers together, 1 more for each sent,
// retransmissions included (P-14.1.4). An answer names the serial of the ask and the time
// at which the ask arrived: microseconds of the receiver's clock modulo 2³², from any
// start. runs is a list of pairs of uvarints in their shortest form: units
// that are missing (at least one, but in the first pair), then units that are
// there (at least one); what follows the last pair is missing.
//
// Offer, chunk, ask and stop come from the sender of a file; accept, refuse,
// answer, done and decline from its receiver. Everything but chunks, asks and
// answers is sent again until it is acknowledged (P-14.2.2).
type kind uint8

const (
	kindOffer kind = iota + 1
	kindAccept
	kindRefuse
	kindChunk
	kindAsk
	kindAnswer
	kindDone
	kindStop
	kindDecline
)

const (
	// unit is what offsets count, and the smallest chunk. Smaller ones would cost
	// more headers where the link is slow, larger ones would hold up the game's
	// datagrams for longer: 512 bytes take 4.6 ms at 1 Mbit/s.
	unit = 512
	// largestChunk, in units, is what fits into a datagram of 1200 bytes.
	largestChunk = 2

	offerSize   = 512 // as large as the largest thing that answers it
	chunkHeader = 1 + 2 + 2 + 4
	maxText     = 255 // bytes of a name or a reason
	maxSize     = unit * math.MaxUint32
)

// Offer is what a sender says of a file before it sends the bytes.
type Offer struct {
	ID     uint16            // number of the transfer at its sender, from 0
	Name   []byte            // up to 255 bytes; what they mean is the application's choice
	Size   int64             // in bytes, up to 2 TiB
	Digest [sha256.Size]byte // SHA-256 of the whole
}

// units returns how many units a file has.
func (o *Offer) units() int64 { return (o.Size + unit - 1) / unit }

// bytes returns how many bytes of the file a run of units has.
func (o *Offer) bytes(r run) int64 { return min(r.to*unit, o.Size) - r.from*unit }

// message is one parsed payload. Fields that its kind does not have are zero.
type message struct {
	kind    kind
	id      uint16
	offer   Offer
	serial  uint16
	arrived uint32
	result  byte
	unit    int64
	data    []byte // of a chunk; runs of an accept; a reason
}

const (
	resultGood   = 0
	resultDiffer = 1
)

// parse reads a payload. What it returns aliases payload.
func parse(payload []byte) (m message, err error) {
	if len(payload) < 3 {
		return message{}, ErrMessage
	}
	m.kind = kind(payload[0])
	m.id = binary.LittleEndian.Uint16(payload[1:])
	rest := payload[3:]
	switch m.kind {
	case kindOffer:
		m.offer.ID = m.id
		err = m.offer.parse(rest)
	case kindAccept:
		m.data = rest
		if len(payload) > offerSize {
			err = ErrMessage
		}
	case kindRefuse, kindStop, kindDecline:
		m.data = rest
		if len(rest) > maxText {
			err = ErrMessage
		}
	case kindChunk, kindAsk:
		if len(payload) <= chunkHeader || len(payload) > chunkHeader+largestChunk*unit {
			return message{}, ErrMessage
		}
		m.serial = binary.LittleEndian.Uint16(rest)
		m.unit = int64(binary.LittleEndian.Uint32(rest[2:]))
		m.data = rest[6:]
	case kindAnswer:
		if len(payload) != 7 {
			return message{}, ErrMessage
		}
		m.serial, m.id = m.id, 0
		m.arrived = binary.LittleEndian.Uint32(rest)
	case kindDone:
		if len(rest) != 1 || rest[0] > resultDiffer {
			return message{}, ErrMessage
		}
		m.result = rest[0]
	default:
		err = ErrMessage
	}
	if err != nil {
		return message{}, err
	}
	return m, nil
}

// parse reads an offer behind its id.
func (o *Offer) parse(rest []byte) error {
	if len(rest) != offerSize-3 {
		return ErrMessage
	}
	size := binary.LittleEndian.Uint64(rest)
	copy(o.Digest[:], rest[8:])
	name := rest[8+sha256.Size:]
	n := int(name[0])
	if size > maxSize || len(bytes.Trim(name[1+n:], "\x00")) != 0 {
		return ErrMessage
	}
	o.Size = int64(size)
	o.Name = name[1 : 1+n]
	return nil
}

func (o *Offer) append(dst []byte) []byte {
	end := len(dst) + offerSize
	dst = appendHead(dst, kindOffer, o.ID)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(o.Size))
	dst = append(dst, o.Digest[:]...)
	dst = append(dst, byte(len(o.Name)))
	dst = append(dst, o.Name...)
	return append(dst, make([]byte, end-len(dst))...)
}

func appendHead(dst []byte, k kind, id uint16) []byte {
	return binary.LittleEndian.AppendUint16(append(dst, byte(k)), id)
}

func appendAnswer(dst []byte, serial uint16, arrived uint32) []byte {
	return binary.LittleEndian.AppendUint32(appendHead(dst, kindAnswer, serial), arrived)
}

// appendChunk appends all of a chunk but its data.
func appendChunk(dst []byte, ask bool, id, serial uint16, offset int64) []byte {
	k := kindChunk
	if ask {
		k = kindAsk
	}
	dst = binary.LittleEndian.AppendUint16(appendHead(dst, k, id), serial)
	return binary.LittleEndian.AppendUint32(dst, uint32(offset))
}

// run is a row of units, from the first to before the end.
type run struct{ from, to int64 }

// appendRun appends a run behind one that ended at end.
func appendRun(dst []byte, end int64, r run) []byte {
	dst = binary.AppendUvarint(dst, uint64(r.from-end))
	return binary.AppendUvarint(dst, uint64(r.to-r.from))
}

// parseRuns reads a whole list of runs within a file of so many units (P-14.1.3).
func parseRuns(list []byte, units int64) ([]run, error) {
	var runs []run
	var end int64
	for len(list) > 0 {
		var pair [2]int64
		for i := range pair {
			v, n := binary.Uvarint(list)
			if n <= 0 || n > 1 && list[n-1] == 0 || v > uint64(units-end) {
				return nil, ErrMessage
			}
			pair[i], list = int64(v), list[n:]
			end += pair[i]
		}
		if pair[0] == 0 && len(runs) > 0 || pair[1] == 0 {
			return nil, ErrMessage
		}
		runs = append(runs, run{end - pair[1], end})
	}
	return runs, nil
}

//go:build tshark

package wireshark

import (
	"bytes"
	"encoding/binary"
	"time"
)

// A frame is a datagram as a capture has it.
type frame struct {
	at   time.Duration
	back bool   // from the second peer to the first
	port uint16 // of the first peer; the second has the next
	data []byte
	snap int // bytes that were captured, if fewer than all
}

const (
	ipHeader  = 20
	udpHeader = 8
	rawIP     = 101 // LINKTYPE_RAW
)

// pcap returns the frames as a capture file with times in nanoseconds.
func pcap(frames []frame) []byte {
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&out, binary.LittleEndian, v) // a bytes.Buffer does not fail
		}
	}
	put(uint32(0xA1B23C4D), uint16(2), uint16(4), uint32(0), uint32(0), uint32(65535), uint32(rawIP))
	for _, f := range frames {
		packet := f.packet()
		captured := packet
		if f.snap > 0 {
			captured = packet[:min(len(packet), ipHeader+udpHeader+f.snap)]
		}
		put(uint32(f.at/time.Second), uint32(f.at%time.Second), uint32(len(captured)), uint32(len(packet)), captured)
	}
	return out.Bytes()
}

// packet returns the datagram with its headers of UDP and IPv4.
func (f frame) packet() []byte {
	from, to := f.port, f.port+1
	source, destination := byte(1), byte(2)
	if f.back {
		from, to = to, from
		source, destination = destination, source
	}
	p := make([]byte, ipHeader+udpHeader, ipHeader+udpHeader+len(f.data))
	p[0] = 0x45
	binary.BigEndian.PutUint16(p[2:], uint16(cap(p)))
	p[8], p[9] = 64, 17
	copy(p[12:], []byte{192, 0, 2, source, 192, 0, 2, destination}) // RFC 5737
	sum := uint32(0)
	for i := 0; i < ipHeader; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum > 0xFFFF {
		sum = sum&0xFFFF + sum>>16
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum))
	binary.BigEndian.PutUint16(p[ipHeader:], from)
	binary.BigEndian.PutUint16(p[ipHeader+2:], to)
	binary.BigEndian.PutUint16(p[ipHeader+4:], uint16(udpHeader+len(f.data)))
	return append(p, f.data...)
}

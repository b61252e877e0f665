package simnet_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// nim is the game that example_property_test.go tests, as somebody might have
// written it who never heard of simnet: two players take one to three of 21 stones
// in turn, and who takes the last wins. Each packet holds all moves so far and a
// checksum.
type nim struct {
	player int    // 0 begins
	moves  []byte // stones taken, of both in turn
}

// Left returns how many stones are left.
func (g *nim) Left() int {
	left := 21
	for _, stones := range g.moves {
		left -= int(stones)
	}
	return left
}

// Tick moves if it is this player's turn, and returns a packet for the other.
func (g *nim) Tick() []byte {
	if left := g.Left(); left > 0 && len(g.moves)%2 == g.player {
		g.moves = append(g.moves, byte(min(left, max(1, left%4))))
	}
	return append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(g.moves)), g.moves...)
}

// Input takes a packet of the other player.
func (g *nim) Input(packet []byte) {
	if len(packet) < 4 || binary.LittleEndian.Uint32(packet) != crc32.ChecksumIEEE(packet[4:]) {
		return
	}
	if moves := packet[4:]; len(moves) > len(g.moves) {
		g.moves = bytes.Clone(moves)
	}
}

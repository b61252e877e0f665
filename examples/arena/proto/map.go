package proto

import "github.com/ackbits/ackbits"

// The map comes by package transfer, in datagrams of a type of its own.
const (
	TypeMap ackbits.Type = 16

	// MapName is what a server calls its map in the offer.
	MapName = "map"
)

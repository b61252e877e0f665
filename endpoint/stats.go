package endpoint

// The counters as the application sees them. They are counted where things happen.

// Stats counts what a Server or Gate has done. Everything is a count since its
// start but the first two, which tell of the moment.
type Stats struct {
	Peers      int // sessions, those of a Server until their Left was fetched
	Remembered int // clients that are remembered, live ones included

	// Of the handshake.
	Hellos     uint64 // that were long enough
	Challenges uint64 // answers to a Hello without a good cookie
	BadCookies uint64 // of these: it had one, too old, of another address, of before a restart, or made up
	Joins      uint64
	Pending    uint64 // times that Admit put a decision off
	Repeated   uint64 // Accepts and Refuses that were said again
	Hushed     uint64 // Hellos that get no answer: of a client that plays, has played or was refused, or too soon after the last

	// Refusals, by reason.
	RefusedByAdmit   uint64
	RefusedFull      uint64 // MaxPeers
	RefusedByAddress uint64 // MaxPerAddress
	RefusedForm      uint64 // Wide at one side only
	RefusedLeaving   uint64 // after Shutdown

	// Hellos with a good cookie that got no answer, by reason: the client asks again.
	HeldByRate    uint64 // more joins a second than the server computes for
	HeldByAddress uint64 // too many attempts of the address, or of its IPv6 /48, within 20 s
	HeldByMemory  uint64 // no room to remember another client
	HeldFull      uint64 // Admit let in more than MaxPeers: asked once more, as it may have freed a seat
	Failed        uint64 // Rand or AEAD returned an error

	// What was dropped.
	Malformed      uint64 // of the handshake's format, and no message that is expected here
	Forged         uint64 // handshake messages that did not open, and replies to no probe
	Foreign        uint64 // neither of the handshake nor of a session that is known
	AnswersDropped uint64 // answers for which no room was left until Due

	Resets     uint64 // told to a client that its session is not known
	ResetsHeld uint64 // not told, as too many were
	Probes     uint64 // asked an address whether a peer has moved there
	Moves      uint64 // peers that had
}

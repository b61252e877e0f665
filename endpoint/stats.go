package endpoint

// The counters that the application sees. They are counted where things happen.

// Stats counts what a Server or Gate has done since its start. Peers and Remembered are
// not counts: they describe the moment.
type Stats struct {
	Peers      int // sessions; with a Server, until their Left was fetched
	Remembered int // clients that are remembered, those with a session included

	// Of the handshake.
	Hellos     uint64 // Hellos of a valid length
	Challenges uint64 // answers to a Hello without a good cookie
	BadCookies uint64 // of Challenges: the Hello had a cookie that was too old, of another address, of before a restart, or forged
	Joins      uint64 // clients admitted
	Pending    uint64 // how often Admit returned ErrPending
	Repeated   uint64 // Accepts and Refuses that were sent again
	Hushed     uint64 // Hellos without an answer: of a client that plays, has played or was refused, or too soon after the last one

	// Refusals, by reason.
	RefusedByAdmit   uint64
	RefusedFull      uint64 // MaxPeers
	RefusedByAddress uint64 // MaxPerAddress
	RefusedForm      uint64 // Wide at one side only
	RefusedLeaving   uint64 // after Shutdown

	// Hellos with a good cookie that got no answer, by reason: the client asks again.
	HeldByRate    uint64 // more than the 1,000 joins a second that the server computes for
	HeldByAddress uint64 // too many attempts of the address, or of its IPv6 /48, within 20 s
	HeldByMemory  uint64 // no room to remember another client
	HeldFull      uint64 // Admit admitted one more than MaxPeers; put off once, as it may have freed a seat
	Failed        uint64 // Rand or AEAD returned an error

	// What was dropped.
	Malformed      uint64 // datagrams of the handshake's format that are no message for a server
	Forged         uint64 // handshake messages that did not open, and wrong replies to probes
	Foreign        uint64 // datagrams neither of the handshake nor of a known session
	AnswersDropped uint64 // answers that found the queue for Due full

	Resets     uint64 // Resets sent: the client learns that its session is not known
	ResetsHeld uint64 // Resets not sent because of their limits
	Probes     uint64 // Probes sent, to see whether a peer has moved
	Moves      uint64 // moves of peers
}

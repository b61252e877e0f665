package ackbits

import "encoding/binary"

// Sealing: the AEAD of a session, the nonces, and the replay window (chapter 11 of
// docs/protocol.md). Keys come from the caller. What becomes of a datagram that was
// opened is in receiver.go.

// AEAD encrypts and authenticates datagrams. It has the methods of crypto/cipher.AEAD,
// so every cipher.AEAD is one. Config.Seal says what it must provide.
type AEAD interface {
	NonceSize() int
	Overhead() int
	Seal(dst, nonce, plaintext, additionalData []byte) []byte
	Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error)
}

const (
	// minNonce is the size of a datagram's number in a nonce, in bytes.
	minNonce = 8
	// maxSealOverhead is the largest Overhead of an AEAD, in bytes. Larger, and the
	// smallest datagram would have no room for events; smaller, and unusual AEADs would
	// be refused for nothing.
	maxSealOverhead = 64
	// maxSealed is how many datagrams one key may seal: RFC 9001's limit for AES-GCM
	// on datagrams of up to 2,048 bytes (appendix B.1; P-11.4.1), 51 days at 60 a
	// second. Larger, and ciphertext could be told from noise more easily than the
	// cipher promises; smaller, and sessions would end for nothing.
	maxSealed = 1 << 28
	// maxForged is how many datagrams may fail to open under one key: RFC 9001's limit
	// for ChaCha20-Poly1305 (section 6.6); that for AES-GCM is higher. Larger, and a
	// forger who only guesses might succeed; smaller, and a flood of forged datagrams
	// would end sessions that are safe.
	maxForged = 1 << 36
)

// sealing seals the datagrams of a session, each with its number as the nonce, which is
// not on the wire, and opens each datagram of the peer at most once.
type sealing struct {
	sealer, opener         AEAD
	sealNonce, openNonce   []byte     // zeros, then the number; both in one array, as only one is in use at a time
	newest                 int64      // the number of the newest datagram opened; −1 before any
	opened                 AckTracker // which datagrams were opened: the replay window
	header                 uint8      // length of the header, which stays readable
	sealOverhead, overhead uint8      // how many bytes sealing adds to a datagram of ours, of the peer's
}

// newSealing returns nil if cfg has no keys. cfg must be complete.
func newSealing(cfg *Config) *sealing {
	if cfg.Seal == nil {
		return nil
	}
	ours, theirs := cfg.Seal.NonceSize(), cfg.Open.NonceSize()
	nonce := make([]byte, max(ours, theirs))
	return &sealing{
		sealer: cfg.Seal, opener: cfg.Open,
		sealNonce: nonce[len(nonce)-ours:], openNonce: nonce[len(nonce)-theirs:],
		newest:       -1,
		header:       uint8(headerSize(cfg.Wide)),
		sealOverhead: uint8(cfg.Seal.Overhead()), overhead: uint8(cfg.Open.Overhead()),
	}
}

// seal seals the payload of the datagram that out holds from start on, and returns out
// with it. It works in place if out has capacity for the overhead (P-11.1.1).
func (s *sealing) seal(out []byte, start int, number int64) []byte {
	payload := start + int(s.header)
	return s.sealer.Seal(out[:payload], numbered64(s.sealNonce, number), out[payload:], out[start:payload])
}

// least returns the length in bytes of the shortest datagram.
func (s *sealing) least() int { return int(s.header) + int(s.overhead) }

// open opens the payload of a datagram in place. The datagram's number is the one with
// this sequence that is nearest to the newest number opened (P-11.2.2). A datagram
// that was opened before, or is too old to tell, is refused untried with ErrReplayed
// (P-11.3.1). One that does not open changes nothing (P-11.3.2); one that does is
// recorded at once (P-11.3.3).
func (s *sealing) open(datagram, payload []byte, seq uint16) (plain []byte, err error) {
	number := s.newest + int64(int16(seq-uint16(s.newest)))
	if arrival := s.opened.Classify(seq); number < 0 || arrival != Newest && arrival != Late {
		return nil, ErrReplayed
	}
	plain, err = s.opener.Open(payload[:0], numbered64(s.openNonce, number), payload, datagram[:s.header])
	if err != nil {
		return nil, ErrForged
	}
	s.opened.Receive(seq)
	s.newest = max(s.newest, number)
	return plain, nil
}

// numbered64 writes a datagram's number into the last 8 bytes of a nonce (P-11.2.1).
func numbered64(nonce []byte, number int64) []byte {
	binary.BigEndian.PutUint64(nonce[len(nonce)-minNonce:], uint64(number))
	return nonce
}

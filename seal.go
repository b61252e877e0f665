package ackbits

import "encoding/binary"

// AEAD protects datagrams: the methods of crypto/cipher.AEAD, so that one of
// those fits as it is.
type AEAD interface {
	NonceSize() int
	Overhead() int
	Seal(dst, nonce, plaintext, additionalData []byte) []byte
	Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error)
}

const (
	// minNonce is what a datagram's number takes.
	minNonce = 8
	// maxSealOverhead leaves room for events in the smallest datagram.
	maxSealOverhead = 64
	// maxSealed is how many datagrams one key seals, RFC 9001's limit for AES-GCM
	// on datagrams of up to 2,048 bytes (appendix B.1; P-11.4.1): 51 days at 60 a second.
	// More would make a peer's data easier to tell from noise than the cipher
	// promises; fewer would end sessions for nothing.
	maxSealed = 1 << 28
	// maxForged is how many datagrams that do not open one key bears, the limit
	// for ChaCha20-Poly1305 (RFC 9001, section 6.6; that for AES-GCM is higher).
	// With more, one of the forger's guesses might be right.
	maxForged = 1 << 36
)

// sealing protects a session's datagrams (chapter 11 of docs/protocol.md): it seals each under its number,
// which is not on the wire, and opens each of the peer's at most once.
type sealing struct {
	sealer, opener         AEAD
	sealNonce, openNonce   []byte // zeros, then the number; of one array, since only one is in use at a time
	newest                 int64  // the number of the newest datagram opened; −1 before any
	opened                 AckTracker
	header                 uint8 // bytes of a datagram in the clear
	sealOverhead, overhead uint8 // what a datagram of ours, of the peer's, is longer
}

// newSealing returns nil for a Config without keys, which was completed.
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

// seal seals the payload of the datagram that begins at start, in place as far as
// there is room for the overhead (P-11.1.1).
func (s *sealing) seal(out []byte, start int, number int64) []byte {
	payload := start + int(s.header)
	return s.sealer.Seal(out[:payload], numbered64(s.sealNonce, number), out[payload:], out[start:payload])
}

// least returns how many bytes a datagram has at least.
func (s *sealing) least() int { return int(s.header) + int(s.overhead) }

// open opens the payload of a datagram in place. The number of a datagram is the
// one nearest to the newest opened (P-11.2.2). What was opened before, or is too old
// to tell, is not even tried (P-11.3.1); what does not open leaves no trace
// (P-11.3.2); what does is noted at once (P-11.3.3).
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

// numbered64 puts a datagram's number at the end of a nonce (P-11.2.1).
func numbered64(nonce []byte, number int64) []byte {
	binary.BigEndian.PutUint64(nonce[len(nonce)-minNonce:], uint64(number))
	return nonce
}

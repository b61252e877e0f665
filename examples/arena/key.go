package main

import (
	"crypto/cipher"
	"crypto/ecdh"
	"encoding/binary"
	"errors"

	"github.com/ackbits/ackbits/examples/arena/server"
)

// loadKey reads the server's key from a file, from that of keyFile if file is
// empty.
func loadKey(file string) (*ecdh.PrivateKey, error) {
	if file == "" {
		var err error
		if file, err = keyFile(); err != nil {
			return nil, err
		}
	}
	return server.LoadKey(file)
}

// plain is an AEAD that protects nothing: with it a session costs what it costs
// without encryption. The handshake is encrypted nevertheless.
type plain struct{}

// plainTag is how long its tag is. Without one a Reset could not tell a datagram
// that is long enough from one that is not; a real one has 16 bytes, too.
const plainTag = 16

var errTag = errors.New("arena: wrong tag")

func noAEAD([]byte) (cipher.AEAD, error) { return plain{}, nil }

func (plain) NonceSize() int { return 12 }
func (plain) Overhead() int  { return plainTag }

func (plain) Seal(dst, nonce, plaintext, _ []byte) []byte {
	dst = append(dst, plaintext...)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	return append(dst, nonce[4:]...)
}

func (plain) Open(dst, nonce, ciphertext, _ []byte) ([]byte, error) {
	n := len(ciphertext) - plainTag
	if n < 0 || string(ciphertext[n+8:]) != string(nonce[4:]) {
		return nil, errTag
	}
	return append(dst, ciphertext[:n]...), nil
}

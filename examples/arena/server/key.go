package server

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrKey: a text or a file that holds no key.
var ErrKey = errors.New("arena: not a key")

// keyCode writes the 32 bytes of a key as 43 characters that survive a shell and
// a chat.
var keyCode = base64.RawURLEncoding

// EncodeKey returns a server's public key as a text.
func EncodeKey(k *ecdh.PublicKey) string { return keyCode.EncodeToString(k.Bytes()) }

// DecodeKey reads what EncodeKey wrote.
func DecodeKey(text string) (*ecdh.PublicKey, error) {
	b, err := keyCode.DecodeString(strings.TrimSpace(text))
	if err == nil {
		var k *ecdh.PublicKey
		if k, err = ecdh.X25519().NewPublicKey(b); err == nil {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: %q (43 characters, as the server prints them): %v", ErrKey, text, err)
}

// NewKey returns a fresh private key.
func NewKey() (*ecdh.PrivateKey, error) {
	seed := make([]byte, 32)
	rand.Read(seed) // never fails
	return ecdh.X25519().NewPrivateKey(seed)
}

// LoadKey reads a server's private key from a file, or makes both, readable for
// the owner alone. A server that keeps its key keeps its name: clients that know
// the public half find it again, and hear at once when it was restarted.
func LoadKey(file string) (key *ecdh.PrivateKey, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	b, err := keyCode.DecodeString(strings.TrimSpace(string(text)))
	if err == nil {
		key, err = ecdh.X25519().NewPrivateKey(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: file %s: %v", ErrKey, file, err)
	}
	return key, nil
}

// makeKey writes a fresh key to a file that must not exist.
func makeKey(file string) (*ecdh.PrivateKey, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f, keyCode.EncodeToString(key.Bytes()))
	return key, errors.Join(err, f.Close())
}

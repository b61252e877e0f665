package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeyStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.key")
	made, err := loadKey(file)
	require.NoError(t, err)
	again, err := loadKey(file)
	require.NoError(t, err)
	require.True(t, made.Equal(again))
	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	_, err = loadKey(file)
	require.Error(t, err, "a key that is damaged is not replaced in silence")
	_, err = loadKey(t.TempDir())
	require.Error(t, err)
}

func TestTickets(t *testing.T) {
	backend, now := []byte("secret"), time.Unix(1000, 0)
	ticket := newTicket(backend, "ann", now.Add(time.Second))
	name, err := nameOf(backend, ticket, now)
	require.NoError(t, err)
	require.Equal(t, "ann", name)
	_, err = nameOf(backend, ticket, now.Add(2*time.Second))
	require.ErrorIs(t, err, errTicket)
	_, err = nameOf([]byte("guess"), ticket, now)
	require.ErrorIs(t, err, errTicket)
	for i := range ticket {
		changed := append([]byte(nil), ticket...)
		changed[i] ^= 1
		_, err := nameOf(backend, changed, now)
		require.ErrorIs(t, err, errTicket, i)
		_, err = nameOf(backend, ticket[:i], now)
		require.ErrorIs(t, err, errTicket, i)
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/examples/playground/sim"
)

func output(t *testing.T, args ...string) string {
	var out bytes.Buffer
	require.NoError(t, run(args, &out))
	return out.String()
}

func TestCheckPrintsEachPreset(t *testing.T) {
	text := output(t, "-check", "-for", "3s")
	require.Equal(t, len(sim.Presets), strings.Count(text, "digest: "))
	require.Equal(t, text, output(t, "-check", "-for", "3s"), "the same each time")
	require.NotEqual(t, text, output(t, "-check", "-for", "4s"))
}

func TestCheckOfAnAddress(t *testing.T) {
	text := output(t, "-check", "-for", "2s", "#seed=9&link=loss5&vs=none")
	require.True(t, strings.HasPrefix(text, "#seed=9&loss=5&vs=none\nrun 1\n"), text)
	require.Contains(t, text, "run 2\n")
	require.Contains(t, text, "time: 2 s\n")
}

func TestWrongArguments(t *testing.T) {
	for word, args := range map[string][]string{
		"loss: 99 is not":     {"-check", "loss=99"},
		"is not from 0 to 1h": {"-check", "-for", "2h"},
		"unexpected argument": {"loss=5"},
	} {
		require.ErrorContains(t, run(args, new(bytes.Buffer)), word)
	}
}

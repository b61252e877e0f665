package client_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A browser has no sockets and no files: the protocol code depends on neither.
// That it builds for js/wasm is checked by
//
//	GOOS=js GOARCH=wasm go vet ./client ./proto ./game
func TestNoSocket(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/ackbits/ackbits")
	for _, banned := range []string{"net", "os/exec", "os/signal"} {
		require.NotContains(t, deps, banned)
	}
}

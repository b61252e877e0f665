package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A list ends before the first event that does not fit: what comes after it, be it
// new and small, waits.
func TestListEndsAtTheFirstEventThatDoesNotFit(t *testing.T) {
	c, clock := newChannel(t, Config{})
	list := func(size int) (ids []uint16) {
		h, _ := c.NextHeader(TypeEvent)
		if payload := c.AppendDueEvents(nil, h.Sequence, size); payload != nil {
			events, err := ParseEvents(nil, payload)
			require.NoError(t, err)
			for _, e := range events {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	for _, size := range []int{10, 500, 10} {
		c.Send(make([]byte, size))
	}
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.Equal(t, []uint16{1, 2}, list(1000))
	c.Send(nil)
	clock.Advance(100 * ms)
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.EqualValues(t, 3, c.sender.outbox.log.end)
	require.Equal(t, []uint16{1, 2, 3}, list(1000))
}

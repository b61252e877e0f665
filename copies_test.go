package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The lowest bit of a plan says how the next copy goes, unless none is left.
func TestPlanEndsWithItsLastCopy(t *testing.T) {
	for _, tc := range []struct {
		plan          copyPlan
		near, distant bool
	}{
		{copyPlan{}, false, false},
		{copyPlan{left: 0, far: 0b1}, false, false},
		{copyPlan{left: 1, far: 0b0}, true, false},
		{copyPlan{left: 1, far: 0b1}, false, true},
		{copyPlan{left: 2, far: 0b10}, true, false},
		{copyPlan{left: 2, far: 0b01}, false, true},
	} {
		require.Equal(t, tc.near, tc.plan.near(), "%+v", tc.plan)
		require.Equal(t, tc.distant, tc.plan.distant(), "%+v", tc.plan)
	}
}

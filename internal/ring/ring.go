// Package ring holds the recent elements of a numbered sequence that never ends. When a
// ring grows or shrinks is its owner's decision; internal/trim has the rule.
package ring

import "math/bits"

// Ring is a slice that is indexed by a number that only grows. Its length is zero or a
// power of two. An element stays until its place is taken by the one whose number is
// higher by the length. The owner knows which numbers are present.
type Ring[T any] []T

// At returns the place of a number. The ring must not be empty.
func (r Ring[T]) At(number int64) *T { return &r[int(number)&(len(r)-1)] }

// Resized returns a new ring of length n with the elements first … end − 1 of this one,
// of which there may be at most n.
func (r Ring[T]) Resized(n int, first, end int64) Ring[T] {
	resized := make(Ring[T], n)
	for k := first; k < end; k++ {
		*resized.At(k) = *r.At(k)
	}
	return resized
}

// Ceil returns the smallest power of two that is at least n; n must be positive.
func Ceil(n int) int { return 1 << bits.Len(uint(n-1)) }

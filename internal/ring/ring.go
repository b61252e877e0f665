// Package ring keeps the recent part of an endless numbered sequence.
package ring

import "math/bits"

// Ring is a slice that is indexed by an ever growing number. Its length is zero
// or a power of two, and an element stays until one that is numbered higher by
// the length takes its place. The owner knows which numbers are present.
type Ring[T any] []T

// At returns the place of a number. The ring must not be empty.
func (r Ring[T]) At(number int64) *T { return &r[int(number)&(len(r)-1)] }

// Resized returns a ring of length n that holds the elements first to end − 1
// of this one. There may be at most n of them.
func (r Ring[T]) Resized(n int, first, end int64) Ring[T] {
	resized := make(Ring[T], n)
	for k := first; k < end; k++ {
		*resized.At(k) = *r.At(k)
	}
	return resized
}

// Ceil returns the smallest power of two that is at least n; n must be positive.
func Ceil(n int) int { return 1 << bits.Len(uint(n-1)) }

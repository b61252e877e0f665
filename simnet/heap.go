package simnet

// A heap, for what waits for its time in links and networks.

// heap is a binary heap with the earliest element at index 0. Unlike
// container/heap it does not box what is pushed.
type heap[T interface{ before(T) bool }] []T

func (h *heap[T]) push(x T) {
	s := append(*h, x)
	*h = s
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *heap[T]) pop() T {
	s := *h
	first, last := s[0], len(s)-1
	s[0] = s[last]
	clear(s[last:]) // drops the pointers
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s) {
			return first
		}
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(s[i]) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}

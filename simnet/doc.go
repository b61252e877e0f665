// Package simnet simulates a bad network for tests, bots and measurements: loss, delay,
// jitter, reordering, duplication, damage, bandwidth and outages. A seed decides all of
// it, and it runs in virtual time. It carries any protocol over datagrams ([]byte). Your
// code needs three methods to take part, and nothing of package ackbits.
//
// Three types, each built on the one before:
//
//   - A [Link] is one direction of a path. You tell it the time and move the
//     datagrams yourself.
//   - A [Pair] runs two endpoints over two links, and sets their clock.
//   - A [Net] runs any number of them, with addresses: a server and its clients, a
//     swarm of bots, players whose address changes, servers that restart.
//
// # Virtual time
//
// Nothing waits. A Pair or Net sets the clock that your code reads, from one instant at
// which something happens to the next: a datagram arrives, a deadline comes, or a
// scheduled function runs. An hour of play takes as long as the code that it runs, often
// less than a second. So the code under test must not ask the system for the time: it
// reads a [Clock], such as ackbits.ManualClock, and starts no goroutine and no timer.
//
//	clock := new(ackbits.ManualClock)
//	pair := simnet.NewPair(1, clock, alice, bob,
//		simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.1}, // from alice to bob
//		simnet.Config{Delay: 40 * time.Millisecond})            // from bob to alice
//	pair.Every(60, time.Second, func() { … }) // a game loop of 60 ticks a second
//	pair.Run(time.Minute)
//
// Times are durations since the start of the simulation.
//
// # The same every time
//
// With the same seed and the same calls, the same datagrams are lost, damaged and
// delayed, and the calls come in the same order, on every machine and in every release:
// everything random is decided by comparing integers, and tests pin whole traces. So a
// test that fails for a seed fails for it again. A property test may draw the seed and
// the network conditions: see TestNimEnds in example_property_test.go.
//
// Nothing here may be used by several goroutines at once. Wrong arguments, such as
// a probability above 1, are faults of the test and panic with the value.
package simnet

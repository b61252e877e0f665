package main

func Example() {
	main()
	// Output:
	// a player at 10.0.0.6:4000 has left: ackbits: session closed
	// a player at 10.0.0.1:4000 has left: ackbits: session closed
	// ann, at first: ackbits: peer left
	// ann, on another machine plays: welcome
	// who has no ticket is refused: no ticket, or an old one: log in again
	// who has an old one is refused: no ticket, or an old one: log in again
	// who has another server's key: endpoint: the server has another key
	// the fifth of one household is refused: too many players at this address
	// who sends 50 events at once: ackbits: peer left
	// players: 5
	// joins: 7 of 2040 Hellos
	// refused: 2 by Admit, 1 by address, 0 as it is full
	// held back: 0
	// strangers' datagrams: 2000 answers dropped: 0
}

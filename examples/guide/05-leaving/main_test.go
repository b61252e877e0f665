package main

func Example() {
	main()
	// Output:
	// Alice leaves:
	//   bob hears "good game"
	//   alice: left, as I wanted; bob: the other has left
	// A cable is cut:
	//   alice: lost: ackbits: timeout, after 6s
	// Alice joins again:
	//   bob hears "the flag is mine"
	//   bob hears "good game"
	//   alice: left, as I wanted
}

package main

func Example() {
	main()
	// Output:
	// a state is at most 30ms old alone
	// dust2, 300 KiB, took 1.6s: EOF
	// a state was at most 33ms old meanwhile
	// the map is the same: true
}

package main

func Example() {
	main()
	// Output:
	// as they arrive:       1 0 2 3 4 5 6 7 9 8
	// in the order of Send: 0 1 2 3 4 5 6 7 8 9
}

package main

func Example() {
	main()
	// Output:
	// 100 players, 2000 coins picked up, 2000 counted
}

package main

func Example() {
	main()
	// Unordered output:
	// bob hears "hello, I am alice"
	// alice hears "hello, I am bob"
}

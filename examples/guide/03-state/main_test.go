package main

func Example() {
	main()
	// Output:
	// 100 sent, 90 arrived, 77 were the latest; alice is at 99
}

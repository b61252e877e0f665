//go:build race

package main

// raceDetector: the program is several times slower than it is.
const raceDetector = true

module github.com/ackbits/ackbits/internal/mutate

go 1.26

require github.com/ackbits/ackbits v0.0.0

replace github.com/ackbits/ackbits => ../..

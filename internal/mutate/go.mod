module github.com/ackbits/ackbits/internal/mutate

go 1.26

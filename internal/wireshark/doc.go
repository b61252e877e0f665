// Package wireshark checks docs/wireshark/ackbits.lua: its test writes captures of
// sessions, lets tshark dissect them, and compares every field with what the
// library knows. It needs tshark:
//
//	go test -tags tshark ./internal/wireshark
package wireshark

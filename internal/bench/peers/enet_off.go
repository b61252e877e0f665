//go:build !enet

package peers

func enetSubjects() []Subject { return nil }

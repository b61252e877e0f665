package proto

// HelloVersion is the version of the payloads and events of this package. A
// server refuses a client of another one.
const HelloVersion = 2

// Hello is what a client says of itself when it joins. The handshake of package
// endpoint seals it to the server's key.
type Hello struct {
	Version uint8
	Map     bool   // wants the map, and plays once it has it; a bot may do without
	Name    string // up to MaxName bytes
}

// AppendHello appends the bytes of a hello: version u8, map u8, then the name.
func AppendHello(dst []byte, h Hello) []byte {
	wants := byte(0)
	if h.Map {
		wants = 1
	}
	return appendText(append(dst, h.Version, wants), h.Name)
}

// ParseHello reads the bytes of a hello. Of another version than HelloVersion
// only the first byte is looked at.
func ParseHello(data []byte) (Hello, error) {
	r := reader{rest: data}
	h := Hello{Version: r.u8()}
	if !r.failed && h.Version != HelloVersion {
		return h, nil
	}
	wants := r.u8()
	h.Map, h.Name = wants == 1, r.text(MaxName)
	if r.failed || wants > 1 || len(r.rest) != 0 {
		return Hello{}, ErrMalformed
	}
	return h, nil
}

package peers

// Driver is no library but the driver of the Machines itself: datagrams without
// headers, and an acknowledgement of 20 bytes a tick that says nothing. What it
// costs is in the figures of every Machine.
func Driver() Subject {
	m := Machine(func(_ *Clock, a, b Wire) (End, End, error) {
		return &bareEnd{wire: a}, &bareEnd{wire: b, receives: true}, nil
	})
	return Subject{
		Name:     "the driver alone",
		Settings: "what driving a state machine costs: making, copying and checking messages",
		Does:     "nothing",
		New:      m.open,
		Idle:     m.idle,
	}
}

type bareEnd struct {
	wire     Wire
	receives bool
	out      []byte
	unacked  int
}

func (e *bareEnd) Send(msg []byte) error {
	e.out = append(e.out, msg...)
	e.unacked++
	return nil
}

func (e *bareEnd) Receive(datagram []byte) error {
	if !e.receives {
		e.unacked = 0
	}
	for ; e.receives && len(datagram) >= MessageSize; datagram = datagram[MessageSize:] {
		e.wire.Message(datagram[:MessageSize])
	}
	return nil
}

func (e *bareEnd) Tick() error {
	switch {
	case e.receives:
		e.wire.Datagram(e.wire.Buf[:20])
	case len(e.out) > 0:
		e.wire.Datagram(e.out)
		e.out = e.out[:0]
	}
	return nil
}

func (e *bareEnd) Unacked() int { return e.unacked }

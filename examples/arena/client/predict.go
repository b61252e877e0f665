package client

import "github.com/ackbits/ackbits/examples/arena/game"

// remembered inputs cover a round trip of a second; of an older one the server's word
// counts alone.
const maxInputs = 64

// prediction shows a player where the server will have it: from where the latest
// snapshot has it, it walks on with the inputs that the server had not received when it
// sent that. Which those are the snapshot's own header says, in its acknowledgement.
type prediction struct {
	inputs [maxInputs]input
	count  int    // inputs sent so far
	acked  uint16 // the newest sequence that the server had when it sent the newest snapshot
}

type input struct {
	sequence uint16
	held     game.Buttons
}

// sent notes an input, one for each step.
func (p *prediction) sent(sequence uint16, held game.Buttons) {
	p.inputs[p.count%maxInputs] = input{sequence, held}
	p.count++
}

// walk moves a body by the inputs that the server did not have.
func (p *prediction) walk(m *game.Map, b *game.Body) {
	for i := max(p.count-maxInputs, 0); i < p.count; i++ {
		if in := p.inputs[i%maxInputs]; int16(in.sequence-p.acked) > 0 {
			m.Walk(b, in.held)
		}
	}
}

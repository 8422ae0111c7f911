package fakeprov

import "github.com/weft-fabric/weft/fabric/provider"

// Card moves the bytes of local buffers instead of the processor, as a network card does: by its registrations of them.
type Card interface {
	// Gather is what the card sends of a segment.
	Gather(s *provider.Segment) ([]byte, error)
	// Scatter puts b, which has room, into a segment.
	Scatter(s *provider.Segment, b []byte) error
}

// processor is what moves bytes without a card.
type processor struct{}

func (processor) Gather(s *provider.Segment) ([]byte, error) { return s.Bytes, nil }

func (processor) Scatter(s *provider.Segment, b []byte) error {
	copy(s.Bytes, b)
	return nil
}

func (p *Provider) card() Card {
	if p.Card == nil {
		return processor{}
	}
	return p.Card
}

// gather is what an operation sends.
func (e *endpoint) gather(op *provider.Op) (all []byte, err error) {
	for i := -1; i < len(op.Locals); i++ {
		s := &op.Local
		if i >= 0 {
			s = &op.Locals[i]
		}
		b, err := e.d.net.card().Gather(s)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// scatter places what arrived, and returns how much had room.
func (e *endpoint) scatter(op *provider.Op, b []byte) (done int, err error) {
	for i := -1; i < len(op.Locals); i++ {
		s := &op.Local
		if i >= 0 {
			s = &op.Locals[i]
		}
		n := min(len(s.Bytes), len(b)-done)
		if err := e.d.net.card().Scatter(s, b[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

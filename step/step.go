package step

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// Step is one output step: its variables, the attributes known at that step,
// and access to the data. Make it with [Decoder.Step].
//
// It is immutable but for [Step.End], and safe for concurrent use. The slices
// that its methods return are not to be changed.
type Step struct {
	number    uint64
	cfg       DecoderConfig
	metas     []*bp5.Metadata // by rank, nil where the record is empty
	metaBytes int
	catalog   *catalog
	variables []Variable // as the catalog's entries
	attrs     attrSet
	src       Source
	end       func() error

	listOnce sync.Once
	list     []*Variable

	attrOnce sync.Once
	attrList []*Attribute

	mu     sync.RWMutex // held for reading during transfers, for writing while the step ends
	ended  atomic.Bool
	once   sync.Once
	endErr error
}

// Number returns the writer's number of the step.
func (s *Step) Number() uint64 { return s.number }

// Ranks returns the number of writer ranks.
func (s *Step) Ranks() int { return len(s.metas) }

// MetadataBytes returns the size of the metadata records of all ranks.
func (s *Step) MetadataBytes() int { return s.metaBytes }

// Variables returns the variables that were put in this step, sorted by name.
func (s *Step) Variables() []*Variable {
	s.listOnce.Do(func() { // many programs ask by name
		s.list = make([]*Variable, len(s.variables))
		for i := range s.variables {
			s.list[i] = &s.variables[i]
		}
	})
	return s.list
}

// Variable returns the variable of that name, if it was put in this step.
func (s *Step) Variable(name string) (*Variable, bool) {
	i := s.catalog.find(name)
	if i < 0 {
		return nil, false
	}
	return &s.variables[i], true
}

// lookup is Variable with an error that helps.
func (s *Step) lookup(name string) (*Variable, error) {
	if v, ok := s.Variable(name); ok {
		return v, nil
	}
	help := hint(name, len(s.variables), func(i int) string { return s.variables[i].def.name })
	return nil, fmt.Errorf("step %d: variable %q%s: %w", s.number, name, help, ErrNoVariable)
}

// Attributes returns all attributes known at this step, also those of earlier
// steps, sorted by name.
func (s *Step) Attributes() []*Attribute {
	s.attrOnce.Do(func() { s.attrList = s.attrs.sorted() })
	return s.attrList
}

// Attribute returns the attribute of that name. Attributes of a variable are
// called "variable/attribute" by custom.
func (s *Step) Attribute(name string) (*Attribute, bool) { return s.attrs.find(name) }

// End says that the step is no longer needed: the writer may reuse its memory.
// It waits for transfers that are running (cancel their context to hurry).
// Afterwards every transfer fails with [ErrStepEnded]; what is in the metadata
// can still be asked. Views stay valid until they are released. Only the first
// call has an effect; later ones return its error.
func (s *Step) End() error {
	s.once.Do(func() {
		s.ended.Store(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.end != nil {
			s.endErr = s.end()
		}
	})
	return s.endErr
}

// enter begins a transfer, which leave ends. It fails once the step is ending:
// at once then, End may have to wait for others.
func (s *Step) enter() error {
	// The flag first: behind a waiting End, RLock would wait for the transfers that
	// End waits for.
	if !s.ended.Load() {
		s.mu.RLock()
		if !s.ended.Load() {
			return nil
		}
		s.mu.RUnlock()
	}
	return s.endedErr()
}

// leave ends a transfer.
func (s *Step) leave() { s.mu.RUnlock() }

// endedErr says which step has ended: programs hold several at a time.
func (s *Step) endedErr() error { return fmt.Errorf("step %d: %w", s.number, ErrStepEnded) }

package cp

import (
	"errors"
	"fmt"
	"testing"
)

// TestFaultKeepsWhereItBegan: the rank survives wrapping and the way to another
// rank, and the first one that was said counts.
func TestFaultKeepsWhereItBegan(t *testing.T) {
	plain := errors.New("plain")
	placed := At(3, plain)
	for name, c := range map[string]struct {
		err  error
		rank int
		ok   bool
	}{
		"nil":            {nil, 0, false},
		"plain":          {plain, 0, false},
		"placed":         {placed, 3, true},
		"wrapped":        {fmt.Errorf("x: %w: %w", plain, placed), 3, true},
		"placed twice":   {At(1, fmt.Errorf("x: %w", placed)), 3, true},
		"rank 0":         {At(0, plain), 0, true},
		"a fault":        {NewFault(placed).Err(), 3, true},
		"a fault inside": {NewFault(fmt.Errorf("x: %w", NewFault(placed))).Err(), 3, true},
		"a plain fault":  {NewFault(plain).Err(), 0, false},
	} {
		if rank, ok := ErrorRank(c.err); ok != c.ok || ok && rank != c.rank {
			t.Errorf("%s: rank %d, %v", name, rank, ok)
		}
	}
	if !errors.Is(placed, plain) || placed.Error() != "plain" {
		t.Errorf("%v", placed)
	}
}

// TestFaultOfARankThatDied: everybody learns which rank it was.
func TestFaultOfARankThatDied(t *testing.T) {
	s := newWriterScript(t, func(c *WriterConfig) { c.Members = 3 })
	s.do([]string{"die", "2"})
	if rank, ok := ErrorRank(s.leader.Failure()); !ok || rank != 2 {
		t.Errorf("%v is of rank %d, %v", s.leader.Failure(), rank, ok)
	}
	m := NewReaderMember(MemberReaderConfig{})
	m.Handle(MemberStart{})
	m.Handle(LeaderLost{errTest})
	if rank, ok := ErrorRank(m.Failure()); !ok || rank != 0 {
		t.Errorf("%v is of rank %d, %v", m.Failure(), rank, ok)
	}
}

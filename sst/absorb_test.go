package sst

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// encoded makes one step with an attribute.
func encoded(t *testing.T) step.Output {
	t.Helper()
	e := step.NewEncoder(step.EncoderConfig{})
	if err := e.SetAttribute(step.NewAttribute("unit", "m")); err != nil {
		t.Fatal(err)
	}
	if err := e.Begin(step.NewHeapPool(0).NewStore()); err != nil {
		t.Fatal(err)
	}
	out, err := e.End()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// metadata is the message of a step with the attributes, and perhaps the
// formats, of out.
func metadata(n int64, out step.Output, whole bool) *sstmsg.TimestepMetadata {
	m := &sstmsg.TimestepMetadata{Step: n, CohortSize: 1, Attributes: []sstmsg.Block{{Data: sstmsg.ByteBlob(out.Attributes)}}}
	if whole {
		m.Metadata = []sstmsg.Block{{Data: sstmsg.ByteBlob(out.Metadata)}}
		for _, f := range out.Formats {
			m.Formats = append(m.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob(f.ID[:]), Body: sstmsg.ByteBlob(f.Body)})
		}
	}
	return m
}

// TestDiscardedAttributesWait: a real writer sends the attributes of a step that
// it discards, but their formats only with the next whole step.
func TestDiscardedAttributesWait(t *testing.T) {
	out := encoded(t)
	if len(out.Attributes) == 0 || len(out.Formats) == 0 {
		t.Fatal("the step has no attributes or no formats")
	}
	r := &Reader{decoder: step.NewDecoder(step.DecoderConfig{})}
	for n := range int64(2) {
		if err := r.absorb(metadata(n, out, false)); err != nil {
			t.Fatalf("discarded step %d: %v", n, err)
		}
	}
	next := metadata(2, out, true)
	next.Attributes = []sstmsg.Block{{}}
	if err := r.absorb(next); err != nil {
		t.Fatalf("the next whole step: %v", err)
	}
	if len(r.early) != 0 {
		t.Errorf("%d records still wait", len(r.early))
	}
	st, err := r.decoder.Step(2, [][]byte{out.Metadata}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Attributes(); len(got) != 1 || got[0].Name() != "unit" {
		t.Errorf("the step has the attributes %v", got)
	}
}

// TestUnknownAttributeFormat: a whole step must bring its formats.
func TestUnknownAttributeFormat(t *testing.T) {
	m := metadata(0, encoded(t), true)
	m.Formats = nil
	r := &Reader{decoder: step.NewDecoder(step.DecoderConfig{})}
	if err := r.absorb(m); !errors.Is(err, ErrProtocol) {
		t.Errorf("got %v, want ErrProtocol", err)
	}
}

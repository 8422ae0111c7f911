package memmon

import "testing"

type owner uint64

func (o *owner) Generation() uint64 { return uint64(*o) }

func TestKinds(t *testing.T) {
	b := []byte("some bytes")
	own := owner(1)
	m := Mapped(b, &own)
	if string(m.Bytes()) != string(b) || m.Generation() != 1 {
		t.Errorf("mapped memory is %q of generation %d", m.Bytes(), m.Generation())
	}
	if own = 2; m.Generation() != 2 {
		t.Errorf("its owner says 2, it says %d", m.Generation())
	}
	if h := HeapBytes(b); &h.Bytes()[0] != &b[0] || h.Generation() != 0 {
		t.Errorf("heap memory is %q of generation %d", h.Bytes(), h.Generation())
	}
	if n := Mapped(b, nil); n.Bytes() != nil || n.Generation() != 0 {
		t.Errorf("memory that nobody answers for is %q of generation %d", n.Bytes(), n.Generation())
	}
}

func TestLasting(t *testing.T) {
	if !Lasting(HeapBytes(make([]byte, 1))) {
		t.Error("memory of the heap lasts as long as it is held")
	}
	if own := owner(1); Lasting(Mapped(make([]byte, 1), &own)) || Lasting(nil) {
		t.Error("only an owner knows how long what it mapped lasts")
	}
}

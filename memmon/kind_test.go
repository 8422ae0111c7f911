package memmon

import (
	"errors"
	"testing"
)

type owner uint64

func (o *owner) Generation() uint64 { return uint64(*o) }

// loose is an owner that cannot be compared.
type loose []int

func (loose) Generation() uint64 { return 1 }

// sometimes is an owner of which some can be compared.
type sometimes struct{ what any }

func (sometimes) Generation() uint64 { return 1 }

// named is a kind of a program's own: it must not be taken for memory of which somebody answers.
type named struct{ Kind }

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
	for _, n := range []Kind{Mapped(b, nil), Mapped(b, loose{}), Mapped(b, sometimes{[]int{1}}), Mapped(b, (*owner)(nil)), named{Mapped(b, nil)}} {
		if string(n.Bytes()) != string(b) || n.Generation() != 0 || Answered(n) {
			t.Errorf("memory that nobody answers for is %q of generation %d, answered: %v", n.Bytes(), n.Generation(), Answered(n))
		}
	}
}

func TestLasting(t *testing.T) {
	if !Lasting(HeapBytes(make([]byte, 1))) || !Lasting(named{HeapBytes(make([]byte, 1))}) {
		t.Error("memory of the heap lasts as long as it is held")
	}
	if own := owner(1); Lasting(Mapped(make([]byte, 1), &own)) || Lasting(nil) {
		t.Error("only an owner knows how long what it mapped lasts")
	}
}

func TestCheck(t *testing.T) {
	var own owner
	for what, k := range map[string]Kind{
		"nil": nil, "heap": HeapBytes(make([]byte, 8)), "nothing": HeapBytes(nil), "owned": Mapped(global[:], &own), "nobody's": Mapped(global[:], nil),
	} {
		if err := Check(k); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, b := range map[string][]byte{"global": global[:], "mapped": pages(t, 1).Bytes()} {
		if err := Check(HeapBytes(b)); !errors.Is(err, ErrNotHeap) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSource(t *testing.T) {
	b, c := make([]byte, 8), make([]byte, 8)
	one, two := owner(1), owner(1)
	for i, k := range []struct {
		a, b Kind
		want bool
	}{
		{HeapBytes(b), HeapBytes(c), true},
		{Mapped(b, &one), Mapped(c, &one), true},
		{Mapped(b, &one), Mapped(b, &two), false},
		{Mapped(b, nil), Mapped(c, nil), true},
		{Mapped(b, nil), HeapBytes(b), false},
		{Mapped(b, sometimes{1}), Mapped(c, sometimes{1}), true},
	} {
		if (Source(k.a) == Source(k.b)) != k.want {
			t.Errorf("%d: same source: %v", i, !k.want)
		}
	}
}

package sys

import (
	"errors"
	"syscall"
	"testing"
)

func TestAnonymous(t *testing.T) {
	m := anonymous(t, 3)
	b := m.Bytes()
	at := Address(b)
	b[0], b[len(b)-1] = 1, 2
	if err := m.Free(); err != nil {
		t.Fatal(err)
	}
	b[0] = 3
	if a, taken, err := MapAnonymousAt(at, len(b)); a != nil || !taken || err != nil {
		t.Errorf("mapped where memory lies: %v, %v", taken, err)
	}
	if err := m.Move(); err != nil {
		t.Fatal(err)
	}
	if moved := m.Bytes(); Address(moved) == at || len(moved) != len(b) || moved[0] != 3 {
		t.Errorf("%d bytes with %d at %#x, which were at %#x", len(moved), moved[0], Address(moved), at)
	}
	again, taken, err := MapAnonymousAt(at, len(b))
	if err != nil || taken {
		t.Fatal(taken, err)
	}
	if Address(again.Bytes()) != at || again.Bytes()[0] != 0 {
		t.Error("not new memory there")
	}
	if err := errors.Join(again.Close(), again.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := MapAnonymousAt(at+1, len(b)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("mapped inside of a page: %v", err)
	}
	if err := m.Forbid(); err != nil {
		t.Fatal(err)
	}
	list, err := MappingsOf(Address(m.Bytes()), uint64(len(b)))
	if err != nil || len(list) != 1 || list[0].Readable {
		t.Errorf("%+v, %v: it can be read", list, err)
	}
}

package memmon

import "testing"

type owner struct{}

func (owner) Generation() uint64 { return 7 }

func TestLasting(t *testing.T) {
	if !Lasting(HeapBytes(make([]byte, 1))) {
		t.Error("memory of the heap lasts as long as it is held")
	}
	if Lasting(Mapped(make([]byte, 1), owner{})) || Lasting(nil) {
		t.Error("only an owner knows how long what it mapped lasts")
	}
}

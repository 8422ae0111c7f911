package sys

import "testing"

type arrayOfHeap struct {
	_     [4]*int
	bytes [100]byte
}

func TestOfGoHeap(t *testing.T) {
	m, err := MapAnonymous(osPageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	big := make([]byte, 8<<20)
	mixed := new(arrayOfHeap)
	for what, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"tiny":               {make([]byte, 1), true},
		"large":              {big, true},
		"the end of a large": {big[8<<20-1:], true},
		"field of an object": {mixed.bytes[7:], true},
		"global":             {aGlobal[1:], false},
		"mapping":            {m.Bytes(), false},
		"inside a mapping":   {m.Bytes()[77:], false},
	} {
		if is, err := OfGoHeap(c.b); err != nil || is != c.want {
			t.Errorf("%s: %v, %v", what, is, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = OfGoHeap(big) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

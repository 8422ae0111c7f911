package carrier

import (
	"sync"
	"testing"
)

func TestPoolReuses(t *testing.T) {
	p := pool{limit: 64 << 20}
	b := p.get(8<<20 + 40)
	first := &b[0]
	p.releaser(b)()
	for n, same := range map[int]bool{8<<20 + 100: true, 8 << 20: true, 5 << 20: true, 3 << 20: false, 10 << 20: false} {
		c := p.get(n)
		if len(c) != n {
			t.Errorf("%d bytes instead of %d", len(c), n)
		}
		if (&c[0] == first) != same {
			t.Errorf("%d bytes: reused %v", n, !same)
		}
		p.put(c)
		p.free, p.bytes = [][]byte{b[:0]}, cap(b)
	}
}

func TestPoolTakesTheSmallestThatFits(t *testing.T) {
	p := pool{limit: 64 << 20}
	for _, n := range []int{4 << 20, 2 << 20, 3 << 20} {
		p.put(make([]byte, n))
	}
	if b := p.get(2<<20 + 1); cap(b) != 3<<20 {
		t.Errorf("%d bytes for 2 MiB + 1", cap(b))
	}
	if p.bytes != 6<<20 || len(p.free) != 2 {
		t.Errorf("%d bytes in %d pieces are left", p.bytes, len(p.free))
	}
}

func TestPoolIsBounded(t *testing.T) {
	p := pool{limit: 10 << 20}
	for range 100 {
		p.put(make([]byte, 3<<20))
	}
	if p.bytes != 9<<20 || len(p.free) != 3 {
		t.Errorf("%d bytes in %d pieces", p.bytes, len(p.free))
	}
	p.put(make([]byte, 11<<20)) // too large to keep
	p.put(make([]byte, 1000))   // too small to bother
	if p.bytes != 9<<20 {
		t.Errorf("%d bytes", p.bytes)
	}
}

func TestPoolFreesOnce(t *testing.T) {
	p := pool{limit: 10 << 20}
	free := p.releaser(make([]byte, 1<<20))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(free)
	}
	wg.Wait()
	if len(p.free) != 1 {
		t.Errorf("in the pool %d times", len(p.free))
	}
}

func TestRoundUp(t *testing.T) {
	for _, n := range []int{minPooled, minPooled + 1, 100_000, 1 << 20, 8<<20 + 64, 1<<30 + 1} {
		if r := roundUp(n); r < n || r-n > n/7 {
			t.Errorf("roundUp(%d) = %d", n, r)
		}
	}
}

// TestBuffer lends record memory to others, once at a time.
func TestBuffer(t *testing.T) {
	c, _ := open(t, Config{})
	b, free := c.Buffer(minPooled)
	if len(b) != minPooled {
		t.Fatalf("%d bytes", len(b))
	}
	free()
	free()
	again, _ := c.Buffer(minPooled)
	other, _ := c.Buffer(minPooled)
	if &again[0] != &b[0] || &other[0] == &b[0] {
		t.Error("memory that was given back should be used again, by one")
	}
}

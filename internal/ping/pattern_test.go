package ping

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every byte counts: one that is wrong anywhere is found, with its place.
func TestPattern(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 100, 1000, 4096} {
		want := newReference(n)
		b := make([]byte, n)
		fill(b)
		for _, i := range []uint64{0, 1, 255, 256, 1 << 40} {
			stamp(b, i)
			if err := errors.Join(checkEdges(Read, b, i), checkAll(Read, b, i), want.check(Read, b, i)); err != nil {
				t.Fatal(err)
			}
			if n > 0 && (stamped(b, i+1) || checkEdges(Read, b, i+1) == nil) {
				t.Errorf("transfer %d of %d bytes passes for the next one", i, n)
			}
			for k := range b {
				b[k] ^= 1
				err := want.check(Read, b, i)
				if !errors.Is(err, ErrData) {
					t.Fatalf("byte %d of %d is wrong, and %v", k, n, err)
				}
				if e := edge(n); k >= e && k < n-e && !strings.Contains(err.Error(), fmt.Sprintf("byte %d of", k)) {
					t.Errorf("byte %d of %d is wrong, and %v", k, n, err)
				}
				b[k] ^= 1
			}
		}
	}
}

func TestSum(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 1000} {
		b := newReference(n)
		before := sum(b)
		for k := range b {
			b[k]++
			if sum(b) == before {
				t.Errorf("byte %d of %d does not count", k, n)
			}
			b[k]--
		}
	}
}

func TestSpoil(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		b := make([]byte, n)
		spoil(b)
		if slices.ContainsFunc(b, func(c byte) bool { return c != 0xff }) {
			t.Errorf("%v", b)
		}
	}
}

func BenchmarkSum1MiB(b *testing.B) {
	data := newReference(1 << 20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		sum(data)
	}
}

package shmem

import (
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	testutil.MainExplained(m, sys.Open, testutil.Role{Name: "consume", Run: roleConsume})
}

// shared is memory of size bytes, mapped twice: writable, and read-only at another address.
func shared(t testing.TB, size int) (rw, ro Region) {
	t.Helper()
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "test", Size: int64(size)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fd.Close() })
	var r [2]Region
	for i := range r {
		m, err := sys.Map(fd, 0, size, i == 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		r[i] = RegionOf(m)
	}
	return r[0], r[1]
}

// private is memory of this process.
func private(t testing.TB, size int) Region {
	t.Helper()
	r, err := NewRegion(Bytes(make([]uint64, size/8)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

package bp

import (
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakEveryPrefix cuts each file of each fixture at every byte (in an
// ordinary run: at some), and reads what is left. There is an error, or there
// are fewer steps, or only padding was lost; never a panic, and never more
// memory than the file itself explains.
func TestSoakEveryPrefix(t *testing.T) {
	places := testutil.Count(t, 25, 1<<30)
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := bpfixture.Files(t, name)
			whole := reading(t, newMemory(files))
			for cut, b := range files {
				stride := max(1, len(b)/places)
				for n := 0; n < len(b); n += stride {
					m := newMemory(files)
					m.set(cut, b[:n])
					got := reading(t, m)
					if got.steps > whole.steps {
						t.Fatalf("%s cut at %d of %d: %d steps, the whole file has %d", cut, n, len(b), got.steps, whole.steps)
					}
				}
			}
		})
	}
}

// outcome is what came of reading a dataset to its end.
type outcome struct {
	steps int
	err   error
}

// reading opens and reads everything with a small limit on allocations.
func reading(t *testing.T, m *memory) outcome {
	t.Helper()
	r := newReader("mem.bp", m, Config{MaxAlloc: 1 << 20}.resolve())
	defer r.Close()
	if err := r.start(); err != nil {
		return outcome{err: err}
	}
	steps, err := readAll(t.Context(), r)
	return outcome{steps, err}
}

// TestPrefixMemory bounds what reading damaged files allocates in all.
func TestPrefixMemory(t *testing.T) {
	files := bpfixture.Files(t, "main-shapes-3ranks")
	size := 0
	for _, b := range files {
		size += len(b)
	}
	const rounds, perByte = 50, 64 // an open file's structures are larger than their records
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range rounds {
		m := newMemory(files)
		b := files[metaName]
		m.set(metaName, b[:len(b)*i/rounds])
		reading(t, m)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(rounds*perByte*size) {
		t.Errorf("reading %d bytes %d times allocated %d", size, rounds, used)
	}
}

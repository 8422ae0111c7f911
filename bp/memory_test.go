package bp

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/step"
)

// memory is a dataset in memory, which may grow. It counts open files.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	open  int
	most  int
	check sync.Once
}

func newMemory(files map[string][]byte) *memory { return &memory{files: maps.Clone(files)} }

func fixture(t testing.TB, name string) *memory { return newMemory(bpfixture.Files(t, name)) }

func (m *memory) set(name string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = b
}

func (m *memory) get(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name]
}

func (m *memory) Open(name string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	m.open++
	m.most = max(m.most, m.open)
	return &memoryFile{m: m, name: name}, nil
}

func (m *memory) openFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

type memoryFile struct {
	m    *memory
	name string
	once sync.Once
}

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.m.get(f.name)).ReadAt(p, off)
}

func (f *memoryFile) Size() (int64, error) { return int64(len(f.m.get(f.name))), nil }

func (f *memoryFile) Close() error {
	var err error
	err = fs.ErrClosed
	f.once.Do(func() {
		f.m.mu.Lock()
		defer f.m.mu.Unlock()
		f.m.open--
		err = nil
	})
	return err
}

var _ io.ReaderAt = (*memoryFile)(nil)

// openMemory opens a dataset in memory; the reader is closed with the test, and
// when all readers of m are, no file may be open.
func openMemory(t testing.TB, m *memory, cfg Config) (*Reader, error) {
	t.Helper()
	m.check.Do(func() {
		t.Cleanup(func() { // runs after those below
			if n := m.openFiles(); n != 0 {
				t.Errorf("%d files left open", n)
			}
		})
	})
	r := newReader("mem.bp", m, cfg.resolve())
	err := r.start()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r, err
}

// mustOpen is openMemory for datasets that are in order.
func mustOpen(t testing.TB, m *memory, cfg Config) *Reader {
	t.Helper()
	r, err := openMemory(t, m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustStep(t testing.TB, r *Reader, n int) *step.Step {
	t.Helper()
	st, err := r.Step(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ints reads an int32 array.
func ints(t testing.TB, st *step.Step, name string) []int32 {
	t.Helper()
	v, err := step.Lookup[int32](st, name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Get(t.Context(), step.All, nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(a)
}

// collect runs Steps to its end.
func collect(ctx context.Context, r *Reader) (steps []uint64, err error) {
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return steps, err
		}
		steps = append(steps, st.Number())
	}
	return steps, nil
}

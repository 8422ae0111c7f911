package bp

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/step"
)

// readAll reads every variable of every step and returns the whole steps and
// the first error.
func readAll(ctx context.Context, r *Reader) (steps int, err error) {
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return steps, err
		}
		if err := readStep(ctx, st); err != nil {
			return steps, err
		}
		steps++
	}
	return steps, nil
}

func readStep(ctx context.Context, st *step.Step) error {
	for _, v := range st.Variables() {
		if v.OperatorPresent() {
			continue // operators have tests of their own
		}
		if v.Kind() != step.LocalArrayKind {
			if _, err := v.Any(ctx, step.All); err != nil {
				return err
			}
			continue
		}
		for i := range v.NumBlocks() {
			if _, err := v.Any(ctx, step.BlockIndex(i)); err != nil {
				return err
			}
		}
	}
	for _, a := range st.Attributes() {
		a.Value()
	}
	return nil
}

// F91: a dataset cut off anywhere gives its whole steps and then a typed error,
// never a panic and never wrong steps.
func TestTruncatedF91(t *testing.T) {
	for _, name := range []string{"main-append-3then2ranks", "v2.10.2-attrs", "main-shapes-3ranks-datasizebased"} {
		for _, cut := range []string{indexName, metaName, formatsName, "data.0"} {
			t.Run(name+"/"+cut, func(t *testing.T) { truncate(t, name, cut) })
		}
	}
}

func truncate(t *testing.T, name, cut string) {
	m := fixture(t, name)
	whole, last := m.get(cut), -1
	total := mustOpen(t, m, Config{}).NumSteps()
	stride := max(1, len(whole)/60)
	for n := 0; n < len(whole); n += stride {
		m := fixture(t, name)
		m.set(cut, whole[:n])
		r := newReader("mem.bp", m, Config{MaxAlloc: 1 << 20}.resolve())
		err := r.start()
		if cut == indexName && n < 64 {
			if !errors.Is(err, ErrEmpty) {
				t.Fatalf("%d bytes: %v, want ErrEmpty", n, err)
			}
			r.Close()
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		steps, err := readAll(t.Context(), r)
		r.Close()
		// Cut between two index records nothing shows, and the data of a step may end in padding.
		if err != nil && !errors.Is(err, ErrIncomplete) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err == nil && steps < total && cut != indexName {
			t.Fatalf("%d of %d bytes: no error", n, len(whole))
		}
		if steps < last || steps > total {
			t.Fatalf("%d bytes: %d steps, %d with less bytes, %d in all", n, steps, last, total)
		}
		last = steps
	}
	if last < total-2 && cut != formatsName {
		t.Errorf("only %d of %d steps with nearly all bytes", last, total)
	}
}

// The whole steps of a cut index are counted in the error.
func TestIncompleteCountsSteps(t *testing.T) {
	m := fixture(t, "main-append-3then2ranks")
	idx := m.get(indexName)
	m.set(indexName, idx[:len(idx)-1])
	r := mustOpen(t, m, Config{})
	e, ok := errors.AsType[*IncompleteError](r.Err())
	if !ok || e.Steps != 3 || r.NumSteps() != 3 {
		t.Fatalf("error %v, %d steps", r.Err(), r.NumSteps())
	}
	steps, err := collect(t.Context(), r)
	if len(steps) != 3 || !errors.Is(err, ErrIncomplete) {
		t.Errorf("steps %v, error %v", steps, err)
	}
	// The same file with its writer at work is in order.
	live := append([]byte(nil), idx[:len(idx)-1]...)
	live[39] = 1
	m.set(indexName, live)
	if steps, err := collect(t.Context(), mustOpen(t, m, Config{})); len(steps) != 3 || err != nil {
		t.Errorf("live: steps %v, error %v", steps, err)
	}
}

func TestMissingFiles(t *testing.T) {
	for _, name := range []string{metaName, formatsName, "data.0"} {
		m := fixture(t, "main-nostats")
		delete(m.files, name)
		r := mustOpen(t, m, Config{})
		if _, err := readAll(t.Context(), r); !errors.Is(err, ErrIncomplete) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// A damaged record ends the dataset, the steps in front of it are there.
func TestDamagedIndex(t *testing.T) {
	m := fixture(t, "main-append-3then2ranks")
	idx := append([]byte(nil), m.get(indexName)...)
	r := mustOpen(t, m, Config{})
	at := r.idx.steps[2].pos
	for i := range 8 {
		idx[at+1+int64(i)] = 0xff
	}
	m.set(indexName, idx)
	r = mustOpen(t, m, Config{})
	steps, err := collect(t.Context(), r)
	if len(steps) != 2 || !errors.Is(err, ErrDamaged) {
		t.Errorf("steps %v, error %v", steps, err)
	}
}

// No byte of the metadata files can make reading panic or allocate without
// bounds.
func TestFlippedBytes(t *testing.T) {
	for _, name := range []string{indexName, metaName, formatsName} {
		m := fixture(t, "v2.10.2-shapes")
		good := m.get(name)
		for i := 0; i < len(good); i += max(1, len(good)/250) {
			b := append([]byte(nil), good...)
			b[i] ^= 0xff
			m.set(name, b)
			r := newReader("mem.bp", m, Config{MaxAlloc: 1 << 20}.resolve())
			if err := r.start(); err == nil {
				_, _ = readAll(t.Context(), r)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// FuzzOpen takes the three metadata files as they come.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"v2.10.2-shapes", "main-append-3then2ranks", "v2.10.2-attrs-oldstyle", "main-struct", "main-flush-3ranks", "v2.10.2-bzip2"} {
		m := bpfixture.Files(f, name)
		f.Add(m[indexName], m[metaName], m[formatsName])
	}
	data := make([]byte, 64<<10)
	f.Fuzz(func(t *testing.T, idx, meta, formats []byte) {
		m := newMemory(map[string][]byte{indexName: idx, metaName: meta, formatsName: formats, "data.0": data, "data.1": data})
		r := newReader("mem.bp", m, Config{MaxAlloc: 1 << 20}.resolve())
		if err := r.start(); err == nil {
			for n := range min(r.NumSteps(), 8) {
				if st, err := r.Step(t.Context(), n); err == nil {
					_ = readStep(t.Context(), st)
				}
			}
			_ = r.Err()
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if m.open != 0 {
			t.Fatalf("%d files left open", m.open)
		}
	})
}

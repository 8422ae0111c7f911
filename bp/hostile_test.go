package bp

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/step"
)

// A named pipe in the place of any file is refused: opening one would wait for
// a writer that never comes, and no context could end that.
func TestNamedPipes(t *testing.T) {
	fifo := func(path string) string {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := Open(t.Context(), fifo(filepath.Join(t.TempDir(), "pipe")), Config{}); !errors.Is(err, ErrNotBP) {
		t.Errorf("the dataset: %v", err)
	}
	fifo(filepath.Join(t.TempDir(), "sim.sst"))
	for _, name := range []string{indexName, metaName, formatsName, "data.0"} {
		dir := bpfixture.Extract(t, "main-nostats")
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		fifo(path)
		r, err := Open(t.Context(), dir, Config{})
		if err == nil {
			_, err = readAll(t.Context(), r)
			r.Close()
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A contact file that is looked for when the dataset is missing.
	dir := t.TempDir()
	fifo(filepath.Join(dir, "sim"+contactSuffix))
	if _, err := Open(t.Context(), filepath.Join(dir, "sim"), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("contact file: %v", err)
	}
}

// Close wakes who waits for a step, however rarely it looks.
func TestCloseWakesFollower(t *testing.T) {
	m := newMemory(map[string][]byte{})
	newGrower(t, growing4, m.set).step(0)
	synctest.Test(t, func(t *testing.T) {
		r := mustOpen(t, m, Config{Follow: true, Poll: time.Hour})
		begin := time.Now()
		var steps []uint64
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			steps, err = collect(t.Context(), r)
		}()
		synctest.Wait() // it waits for the second step
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if len(steps) != 1 || !errors.Is(err, ErrClosed) || time.Since(begin) != 0 {
			t.Errorf("steps %v, error %v after %v", steps, err, time.Since(begin))
		}
	})
}

// The notice comes in time, however rarely one looks.
func TestNoticeBeforePoll(t *testing.T) {
	m := newMemory(map[string][]byte{})
	newGrower(t, growing4, m.set).step(0)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var after time.Duration
		r := mustOpen(t, m, Config{Follow: true, Poll: time.Minute, Timeout: 2 * time.Minute, Notify: func(Notice) { after = time.Since(begin) }})
		if _, err := collect(t.Context(), r); !errors.Is(err, ErrUnfinished) {
			t.Errorf("error %v", err)
		}
		if after < noticeAfter || after > noticeAfter+time.Second {
			t.Errorf("noticed after %v", after)
		}
	})
}

// Jumping far reads the attributes in between; that ends with the context.
func TestJumpIsCancelled(t *testing.T) {
	m := fixture(t, growing4)
	r := mustOpen(t, m, Config{})
	ctx := &countdown{Context: t.Context(), left: 2}
	if _, err := r.Step(ctx, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if st := mustStep(t, r, 3); st.Number() != 3 {
		t.Errorf("afterwards: step %d", st.Number())
	}
}

// countdown is a context that is cancelled after so many looks.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// entries returns where the entries of mmd.0 begin.
func entries(t *testing.T, mmd []byte) (at []int) {
	t.Helper()
	for n := 0; n < len(mmd); {
		e, _, err := bp5.ParseMMD(mmd[n:])
		if err != nil || len(e) == 0 {
			t.Fatal(err)
		}
		at = append(at, n)
		n += 16 + int(binary.LittleEndian.Uint64(mmd[n:])+binary.LittleEndian.Uint64(mmd[n+8:]))
	}
	return at
}

// A format that is damaged spoils the steps that need it and no others, each
// time they are asked for.
func TestDamagedFormat(t *testing.T) {
	const name = "v2.10.2-attrs-oldstyle" // a new attribute format in some steps
	whole := mustOpen(t, fixture(t, name), Config{})
	mmd := fixture(t, name).get(formatsName)
	at := entries(t, mmd)
	damaged, read := 0, 0
	for _, from := range at {
		m := fixture(t, name)
		b := slices.Clone(mmd)
		b[from+16+12+8+4] ^= 0xff // the offset of the top struct's name
		m.set(formatsName, b)
		r := mustOpen(t, m, Config{})
		for n := range whole.NumSteps() {
			_, err := r.Step(t.Context(), n)
			_, again := r.Step(t.Context(), n)
			switch {
			case err == nil && again == nil:
				read++
			case errors.Is(err, ErrDamaged) && errors.Is(again, ErrDamaged):
				damaged++
			default:
				t.Errorf("format at %d, step %d: %v, then %v", from, n, err, again)
			}
		}
	}
	if damaged == 0 || read == 0 {
		t.Errorf("%d damaged, %d read of %d formats", damaged, read, len(at))
	}
}

// Damage inside a record is ErrDamaged, also where it looks like a record that
// ends too early: the file has all of it.
func TestDamagedRecords(t *testing.T) {
	const name = "v2.10.2-shapes"
	r := mustOpen(t, fixture(t, name), Config{})
	ref := r.idx.steps[0]
	for what, edit := range map[string]func(rec []byte){
		"length": func(rec []byte) { binary.LittleEndian.PutUint64(rec[ffs.IDLen:], 1<<40) },
		"bits":   func(rec []byte) { binary.LittleEndian.PutUint64(rec[24+8:], 1<<40) },
	} {
		m := fixture(t, name)
		b := slices.Clone(m.get(metaName))
		meta, _, err := bp5.ParseStepMeta(b[ref.metaPos:ref.metaPos+ref.metaLen], ref.wmap.writers)
		if err != nil {
			t.Fatal(err)
		}
		edit(meta[0])
		m.set(metaName, b)
		st, err := mustOpen(t, m, Config{}).Step(t.Context(), 0)
		if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %v, %v", what, st, err)
		}
	}
}

// Records of the index with wild numbers in them cost no more memory than the
// file has, and end in a typed error.
func TestSoakHostileIndex(t *testing.T) {
	r := testutil.Rand(t)
	good := fixture(t, "main-append-3then2ranks").get(indexName)
	for range testutil.Count(t, 400, 50_000) {
		m := fixture(t, "main-append-3then2ranks")
		idx := slices.Clone(good)
		for range 1 + r.IntN(2) {
			at := bp5.IndexHeaderSize + r.IntN(len(idx)-bp5.IndexHeaderSize-8)
			binary.LittleEndian.PutUint64(idx[at:], wild(r))
		}
		m.set(indexName, idx)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rd := newReader("mem.bp", m, Config{MaxAlloc: 1 << 20}.resolve())
		if err := rd.start(); err == nil {
			if _, err := readAll(t.Context(), rd); err != nil && !typed(err) {
				t.Errorf("untyped error: %v", err)
			}
		} else if !typed(err) {
			t.Errorf("untyped error: %v", err)
		}
		if err := rd.Close(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%d bytes allocated for %d", n, len(idx))
		}
	}
}

// wild is a number at which sums and products break.
func wild(r *rand.Rand) uint64 {
	list := []uint64{0, 1, 3, 64, 1 << 16, 1<<31 - 1, 1 << 31, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64 - 8, math.MaxUint64}
	return list[r.IntN(len(list))] - uint64(r.IntN(3))
}

func typed(err error) bool {
	for _, is := range []error{ErrDamaged, ErrIncomplete, ErrReplaced, ErrEmpty, step.ErrMetadata, step.ErrTooLarge} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// A writer map that claims millions of writers and is not there costs nothing;
// one that is there costs in proportion to it.
func TestHugeWriterCounts(t *testing.T) {
	head := fixture(t, "main-nostats").get(indexName)[:bp5.IndexHeaderSize]
	const writers = 1 << 17
	body := uint64(8 * (3 + writers))
	claim := binary.LittleEndian.AppendUint64(append(slices.Clone(head), 'w'), body)
	for _, w := range []uint64{writers, 1, 1} {
		claim = binary.LittleEndian.AppendUint64(claim, w)
	}
	whole := append(slices.Clone(claim), make([]byte, 8*writers)...)
	steps := slices.Clone(whole)
	for n := range 2 {
		s := bp5.StepIndex{MetaPos: uint64(n), MetaLen: 8 + 16*writers, Pieces: make([][]bp5.Piece, writers)}
		for w := range s.Pieces {
			s.Pieces[w] = []bp5.Piece{{Size: bp5.UnknownSize}}
		}
		steps = s.Append(steps)
	}
	for name, tc := range map[string]struct {
		idx  []byte
		most uint64
	}{
		"a claim": {claim, 1 << 20},
		"a map":   {whole, 8 * uint64(len(whole))},
		"steps":   {steps, 16 * uint64(len(steps))},
	} {
		m := newMemory(map[string][]byte{indexName: tc.idx, metaName: make([]byte, 100), formatsName: nil})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := openMemory(t, m, Config{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.NumSteps() != 0 || !errors.Is(r.Err(), ErrIncomplete) {
			t.Errorf("%s: %d steps, %v", name, r.NumSteps(), r.Err())
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > tc.most {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(tc.idx))
		}
	}
}

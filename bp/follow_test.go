package bp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// grower writes a fixture anew, the way its writer did: subfiles, mmd.0, md.0,
// then the index record (docs/wire/bp5.md §6.10).
type grower struct {
	files map[string][]byte
	whole []moment // after each step
	write func(name string, b []byte)
}

type moment struct{ idx, meta int64 }

func newGrower(t *testing.T, name string, write func(name string, b []byte)) *grower {
	t.Helper()
	m := fixture(t, name)
	r := mustOpen(t, m, Config{})
	g := &grower{files: m.files, write: write}
	for _, s := range r.idx.steps {
		g.whole = append(g.whole, moment{idx: s.pos + int64(s.size), meta: int64(s.metaPos + s.metaLen)})
	}
	return g
}

// index returns the first n bytes of md.idx with the writer's mark set.
func (g *grower) index(n int64, active byte) []byte {
	b := slices.Clone(g.files[indexName][:n])
	if len(b) > 39 {
		b[39] = active
	}
	return b
}

func (g *grower) step(n int) {
	for name, b := range g.files {
		if strings.HasPrefix(name, "data.") {
			g.write(name, b)
		}
	}
	g.write(formatsName, g.files[formatsName])
	g.write(metaName, g.files[metaName][:g.whole[n].meta])
	g.write(indexName, g.index(g.whole[n].idx, 1))
}

func (g *grower) close() {
	g.write(indexName, g.index(int64(len(g.files[indexName])), 0))
}

const growing4 = "main-append-3then2ranks" // four steps, a change of writers in the middle

// Whatever part of the files is there, only whole steps show.
func TestRefreshSeesWholeStepsOnly(t *testing.T) {
	m := newMemory(nil)
	m.files = map[string][]byte{}
	g := newGrower(t, growing4, m.set)
	m.set(indexName, g.index(64, 1))
	r := mustOpen(t, m, Config{Follow: true})
	for n, w := range g.whole {
		from := len(m.get(metaName))
		for at := from; at < int(w.meta); at += 40 {
			m.set(metaName, g.files[metaName][:at])
			check(t, r, n)
		}
		// The index first: some file systems show it before the metadata.
		for at := int64(len(m.get(indexName))); at <= w.idx; at += 7 {
			m.set(indexName, g.index(at, 1))
			check(t, r, n)
		}
		g.step(n)
		check(t, r, n+1)
		if got := ints(t, mustStep(t, r, n), "x"); len(got) == 0 {
			t.Fatalf("step %d has no data", n)
		}
	}
	g.close()
	check(t, r, 4)
	if r.Active() || r.Err() != nil {
		t.Errorf("closed: active %v, error %v", r.Active(), r.Err())
	}
}

func check(t *testing.T, r *Reader, want int) {
	t.Helper()
	if n, err := r.Refresh(); n != want || err != nil {
		t.Fatalf("%d steps, error %v; want %d", n, err, want)
	}
}

// A live dataset is followed from before it exists to its end.
func TestFollow(t *testing.T) {
	g := newGrower(t, growing4, nil)
	dir := filepath.Join(t.TempDir(), "live.bp")
	synctest.Test(t, func(t *testing.T) {
		g.write = func(name string, b []byte) {
			// As a writer does: nothing is cut off before it is written again.
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = f.WriteAt(b, 0)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			wait := func() { time.Sleep(time.Second) } // the bubble's time
			wait()
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Error(err)
			}
			wait()
			g.write(indexName, nil)
			wait()
			for n := range g.whole {
				g.step(n)
				wait()
			}
			g.close()
		}()
		r, err := Open(t.Context(), dir, Config{Follow: true, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		steps, err := collect(t.Context(), r)
		if err != nil || !slices.Equal(steps, []uint64{0, 1, 2, 3}) {
			t.Errorf("steps %v, error %v", steps, err)
		}
		<-done
	})
}

// F24: a writer that died leaves its mark. After the last whole step and the
// time-out comes a typed error, and the wait explains itself before.
func TestWriterDiedF24(t *testing.T) {
	m := newMemory(map[string][]byte{})
	g := newGrower(t, growing4, m.set)
	for n := range 3 {
		g.step(n)
	}
	synctest.Test(t, func(t *testing.T) {
		var notices []Notice
		r := mustOpen(t, m, Config{Follow: true, Timeout: 5 * time.Second, Notify: func(n Notice) { notices = append(notices, n) }})
		begin := time.Now()
		steps, err := collect(t.Context(), r)
		e, ok := errors.AsType[*UnfinishedError](err)
		if !ok || !errors.Is(err, ErrUnfinished) || e.Steps != 3 || len(steps) != 3 || !e.Timeout() {
			t.Fatalf("steps %v, error %v", steps, err)
		}
		if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("took %v", took)
		}
		if !strings.Contains(err.Error(), "writer ended without close") {
			t.Errorf("text: %v", err)
		}
		if len(notices) != 1 || !strings.Contains(notices[0].String(), "next step of mem.bp (3 so far), for 2s more") {
			t.Errorf("notices: %v", notices)
		}
	})
	// Without following, what is there is all there is, and no error.
	if steps, err := collect(t.Context(), mustOpen(t, m, Config{})); len(steps) != 3 || err != nil {
		t.Errorf("not followed: steps %v, error %v", steps, err)
	}
}

func TestFollowMissing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var notices []Notice
		_, err := Open(t.Context(), filepath.Join(dir, "no.bp"), Config{Follow: true, Timeout: 4 * time.Second, Notify: func(n Notice) { notices = append(notices, n) }})
		if !errors.Is(err, fs.ErrNotExist) || time.Since(begin) != 4*time.Second {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
		if len(notices) != 1 || !strings.Contains(notices[0].String(), "no.bp to appear") {
			t.Errorf("notices: %v", notices)
		}
		// What will never become a dataset is an error at once.
		if _, err := Open(t.Context(), os.DevNull, Config{Follow: true}); !errors.Is(err, ErrNotBP) {
			t.Errorf("a device: %v", err)
		}
	})
}

func TestFollowCancel(t *testing.T) {
	m := newMemory(map[string][]byte{})
	newGrower(t, growing4, m.set).step(0)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := mustOpen(t, m, Config{Follow: true})
		steps, err := collect(ctx, r)
		if len(steps) != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("steps %v, error %v", steps, err)
		}
	})
}

// Somebody runs the simulation again into the same folder.
func TestReplaced(t *testing.T) {
	m := newMemory(map[string][]byte{})
	g := newGrower(t, growing4, m.set)
	g.step(2)
	r := mustOpen(t, m, Config{Follow: true})
	g.step(0)
	if _, err := collect(t.Context(), r); !errors.Is(err, ErrReplaced) {
		t.Errorf("error %v", err)
	}
	m.set(indexName, nil)
	if _, err := r.Refresh(); !errors.Is(err, ErrReplaced) {
		t.Errorf("emptied: error %v", err)
	}
}

// Zeros that a file system shows in place of data are not data.
func TestZerosAtTheEnd(t *testing.T) {
	m := fixture(t, growing4)
	m.set(indexName, append(slices.Clone(m.get(indexName)), make([]byte, 1<<20)...))
	m.set(formatsName, append(slices.Clone(m.get(formatsName)), make([]byte, 1<<20)...))
	r := mustOpen(t, m, Config{})
	steps, err := collect(t.Context(), r)
	if len(steps) != 4 || !errors.Is(err, ErrIncomplete) {
		t.Errorf("steps %v, error %v", steps, err)
	}
}

func TestCopyOfAFixtureIsWhole(t *testing.T) {
	for _, name := range bpfixture.Names() {
		if r := mustOpen(t, fixture(t, name), Config{}); r.Err() != nil || r.Active() {
			t.Errorf("%s: active %v, error %v", name, r.Active(), r.Err())
		}
	}
}

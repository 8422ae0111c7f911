package sst_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// patience bounds every wait of a test; no test passes by it.
const patience = 30 * time.Second

// bounded returns a context that ends before the patience of the test does.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

var quiet = slog.New(slog.DiscardHandler)

// none is a RendezvousReaderCount of zero.
func none() *int { return new(int) }

func count(n int) *int { return &n }

// newSession returns a session on loopback that is closed at the end.
func newSession(t testing.TB, cfg sst.SessionConfig) *sst.Session {
	t.Helper()
	cfg.NetworkInterface = "lo"
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	s, err := sst.NewSession(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func quickSession(t testing.TB) *sst.Session { return newSession(t, sst.SessionConfig{}) }

func streamName(t testing.TB) string { return filepath.Join(t.TempDir(), "s") }

// create opens a stream for writing that waits for nobody. It is closed at the end.
func create(t testing.TB, name string, cfg sst.WriterConfig) *sst.Writer {
	t.Helper()
	if cfg.Params.RendezvousReaderCount == nil {
		cfg.Params.RendezvousReaderCount = none()
	}
	if cfg.Session == nil {
		cfg.Session = quickSession(t)
	}
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout = patience
	}
	w, err := sst.Create(bounded(t), name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// attach opens a stream for reading; it is closed at the end.
func attach(t testing.TB, name string, cfg sst.ReaderConfig) *sst.Reader {
	t.Helper()
	if cfg.Session == nil {
		cfg.Session = quickSession(t)
	}
	r, err := sst.Open(bounded(t), name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// numbers is a variable with as many values as a step's number says, so to speak:
// value i of step n is n<<20 + i.
type numbers struct {
	w *sst.Writer
	v *sst.Variable[int64]
	n int
}

func define(t testing.TB, w *sst.Writer, n int) *numbers {
	t.Helper()
	v, err := sst.Define[int64](w, "n", step.GlobalArray(uint64(n)))
	if err != nil {
		t.Fatal(err)
	}
	return &numbers{w, v, n}
}

// write publishes one step.
func (x *numbers) write(ctx context.Context) error {
	st, err := x.w.BeginStep(ctx)
	if err != nil {
		return err
	}
	data := make([]int64, x.n)
	for i := range data {
		data[i] = int64(st.Number())<<20 + int64(i)
	}
	if err := x.v.Put(st, step.Box{Count: []uint64{uint64(x.n)}}, data); err != nil {
		return err
	}
	return st.End(ctx)
}

func (x *numbers) must(t testing.TB) {
	t.Helper()
	if err := x.write(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// verify reads the variable of a step and compares every value.
func verify(ctx context.Context, st *step.Step) error {
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		return err
	}
	got, err := v.Get(ctx, step.All, nil)
	if err != nil {
		return err
	}
	for i, x := range got {
		if want := int64(st.Number())<<20 + int64(i); x != want {
			return fmt.Errorf("step %d: value %d is %d, want %d", st.Number(), i, x, want)
		}
	}
	if len(got) == 0 {
		return fmt.Errorf("step %d: no values", st.Number())
	}
	return nil
}

// takeStep takes the next step, compares its values and ends it.
func takeStep(t testing.TB, r *sst.Reader) {
	t.Helper()
	st, err := r.BeginStep(bounded(t))
	if err == nil {
		err = verify(bounded(t), st)
	}
	if err != nil {
		t.Fatal(err)
	}
	st.End()
}

// drain reads a stream to its end and returns the numbers of its steps.
func drain(ctx context.Context, r *sst.Reader) ([]uint64, error) {
	var seen []uint64
	for st, err := range r.Steps(ctx) {
		if err == nil {
			err = verify(ctx, st)
		}
		if err != nil {
			return seen, err
		}
		seen = append(seen, st.Number())
	}
	return seen, nil
}

// consecutive reports whether list is from, from+1, ... with n entries.
func consecutive(list []uint64, from uint64, n int) error {
	for i, x := range list {
		if x != from+uint64(i) {
			return fmt.Errorf("step %d at place %d, want %d", x, i, from+uint64(i))
		}
	}
	if len(list) != n {
		return fmt.Errorf("%d steps, want %d", len(list), n)
	}
	return nil
}

// drains reads a stream to its end and wants the steps from, from+1, ... to be
// there, n of them.
func drains(ctx context.Context, r *sst.Reader, from uint64, n int) error {
	seen, err := drain(ctx, r)
	if err != nil {
		return err
	}
	return consecutive(seen, from, n)
}

// next waits for one thing on a channel.
func next[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came: %s", what)
		panic("unreachable")
	}
}

// async runs f in the background.
func async[T any](f func() T) <-chan T {
	ch := make(chan T, 1)
	go func() { ch <- f() }()
	return ch
}

// within runs f and fails if it takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, at most %v is right", what, took, limit)
	}
}

// wants fails unless err is the wanted error.
func wants(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want one that is %q", what, err, want)
	}
}

// absent fails if there is a file.
func absent(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

// empty fails if the folder of a stream has anything in it.
func empty(t testing.TB, name string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		t.Errorf("left behind: %s", e.Name())
	}
}

// beginEOF asks for a step and wants the end of the stream.
func beginEOF(t testing.TB, r *sst.Reader) {
	t.Helper()
	if _, err := r.BeginStep(bounded(t)); err != io.EOF {
		t.Errorf("got %v, want the end of the stream", err)
	}
}

func isErr(err, want error) bool { return errors.Is(err, want) }

// awaitFile waits for the contact file of a stream.
func awaitFile(t testing.TB, name string) {
	t.Helper()
	testutil.Eventually(t, "there is a contact file", func() bool { return exists(name + ".sst") })
}

// still fails if done comes in the moment that anything wrong would need that the
// caller's events have set off already.
func still[T any](t testing.TB, what string, done <-chan T) {
	t.Helper()
	select {
	case got := <-done:
		t.Fatalf("%s did not wait: %v", what, got)
	case <-time.After(20 * time.Millisecond):
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

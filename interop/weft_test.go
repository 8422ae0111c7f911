package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// readZoo reads a whole stream with a Weft reader, checks every step, and
// returns the step numbers.
func readZoo(ctx context.Context, t *testing.T, name string, p sst.Params, check zoo.Check) []int {
	t.Helper()
	p.OpenTimeoutSecs = 60
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Params: p})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var numbers []int
	for st, err := range r.Steps(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := StepJSON(ctx, st)
		if err != nil {
			t.Fatal(err)
		}
		n, err := check.Step(got)
		if err != nil {
			t.Error(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// wantAll checks that the steps 0 to n-1 were seen.
func wantAll(t *testing.T, got []int, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("saw steps %v, want 0 to %d", got, n-1)
	}
	for i, g := range got {
		if g != i {
			t.Errorf("saw steps %v, want 0 to %d", got, n-1)
			return
		}
	}
}

// TestADIOS2ToWeft is acceptance line 4: a real writer of 1, 2 and 4 ranks, a
// Weft reader, preload on and off.
func TestADIOS2ToWeft(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		for _, preload := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%d ranks, preload %s", ranks, preload), func(t *testing.T) {
				dir := t.TempDir()
				w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks}, Steps: 10})
				got := readZoo(t.Context(), t, filepath.Join(dir, "zoo"), sst.Params{SpeculativePreloadMode: preload}, zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream})
				wantAll(t, got, 10)
				w.OK()
			})
		}
	}
}

// startZoo writes the zoo in the background, to the end.
func startZoo(t *testing.T, name string, ranks, steps int, p sst.Params) (wait func() error) {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- writeZoo(ctx, name, ranks, steps, p) }()
	t.Cleanup(cancel)
	return func() error { return <-done }
}

func writeZoo(ctx context.Context, name string, ranks, steps int, p sst.Params) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{Params: p, Ranks: ranks})
	if err != nil {
		return err
	}
	defer w.Close()
	z := ZooWriter{W: w, Ranks: ranks}
	if err := z.Write(ctx, steps); err != nil {
		return err
	}
	return w.Close()
}

// TestWeftToADIOS2 is acceptance line 5: a Weft writer, real readers of 1 and 2
// ranks.
func TestWeftToADIOS2(t *testing.T) {
	for _, c := range []struct{ writer, reader int }{{1, 1}, {1, 2}, {3, 1}, {3, 2}} {
		for _, preload := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%dx%d, preload %s", c.writer, c.reader, preload), func(t *testing.T) {
				dir := t.TempDir()
				wait := startZoo(t, filepath.Join(dir, "zoo"), c.writer, 10, sst.Params{})
				r := ADIOS2Reader(t, ReaderOptions{
					Stream:      Stream{Dir: dir, Ranks: c.reader, Params: map[string]string{"SpeculativePreloadMode": preload}},
					WriterRanks: c.writer, WeftWriter: true, Steps: 10,
				})
				wantAll(t, r.Steps(zoo.Check{Ranks: c.writer, From: zoo.Weft}), 10)
				if err := wait(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestWeftToWeft is the first half of acceptance line 6.
func TestWeftToWeft(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		for _, preload := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%d ranks, preload %s", ranks, preload), func(t *testing.T) {
				name := filepath.Join(t.TempDir(), "zoo")
				wait := startZoo(t, name, ranks, 10, sst.Params{})
				got := readZoo(t.Context(), t, name, sst.Params{SpeculativePreloadMode: preload}, zoo.Check{Ranks: ranks, From: zoo.Weft})
				wantAll(t, got, 10)
				if err := wait(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestADIOS2PeerPatternToWeft reads a writer that was set to the Peer pattern,
// which works in ADIOS2 with one reader rank.
func TestADIOS2PeerPatternToWeft(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks, Params: map[string]string{"CPCommPattern": "Peer"}}, Steps: 5})
			got := readZoo(t.Context(), t, filepath.Join(dir, "zoo"), sst.Params{}, zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream})
			wantAll(t, got, 5)
			w.OK()
		})
	}
}

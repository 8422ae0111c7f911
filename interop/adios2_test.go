package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/interop/zoo"
)

// These tests have real ADIOS2 on both sides: they show that the peers and the
// table are right before Weft is measured with them.

const steps = 5

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func wantSteps(t *testing.T, got, want []int) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps: %s", diff)
	}
}

// TestADIOS2Streams runs each pair of cohorts with speculative preload (the
// writer pushes the data) and without (the reader asks for each piece).
func TestADIOS2Streams(t *testing.T) {
	for _, size := range []struct{ writers, readers int }{{1, 1}, {2, 1}, {4, 1}, {1, 2}} {
		for _, preload := range []string{"ON", "OFF"} {
			t.Run(fmt.Sprintf("%dx%d/preload=%s", size.writers, size.readers, preload), func(t *testing.T) {
				stream := Stream{Dir: t.TempDir(), Params: map[string]string{"SpeculativePreloadMode": preload}}
				from, to := stream, stream
				from.Ranks, to.Ranks = size.writers, size.readers
				w := ADIOS2Writer(t, WriterOptions{Stream: from, Steps: steps})
				r := ADIOS2Reader(t, ReaderOptions{Stream: to, WriterRanks: size.writers, Steps: steps})
				got := r.Steps(zoo.Check{Ranks: size.writers, From: zoo.ADIOS2Stream})
				wantSteps(t, got, upTo(steps))
				w.OK()
			})
		}
	}
}

func TestADIOS2Files(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d", ranks), func(t *testing.T) {
			file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5", Ranks: ranks}
			ADIOS2Writer(t, WriterOptions{Stream: file, Steps: steps}).OK()
			file.Ranks = 1
			r := ADIOS2Reader(t, ReaderOptions{Stream: file, WriterRanks: ranks, Steps: steps})
			wantSteps(t, r.Steps(zoo.Check{Ranks: ranks, From: zoo.ADIOS2File}), upTo(steps))
		})
	}
}

// TestADIOS2LateReader attaches to a writer that waits for nobody and keeps one
// step. In SST a late reader gets what is still queued, and maybe no attributes.
func TestADIOS2LateReader(t *testing.T) {
	stream := Stream{Dir: t.TempDir()}
	from := stream
	from.StepWait = true
	from.Params = map[string]string{"RendezvousReaderCount": "0", "QueueLimit": "1", "QueueFullPolicy": "Discard"}
	w := ADIOS2Writer(t, WriterOptions{Stream: from, Steps: 1 << 20})
	next := func() {
		w.Next()
		w.Expect("STEP ")
	}
	next()
	next()
	r := ADIOS2Reader(t, ReaderOptions{Stream: stream, Late: true, Gaps: true, StopAfter: 1})
	// The writer answers a late reader in an EndStep, so it must go on until the reader has got
	// what it wants.
	for !ended(r) {
		next()
	}
	got := r.Steps(zoo.Check{From: zoo.ADIOS2Stream, AttributesMayMiss: true})
	w.OK()
	if len(got) != 1 || got[0] == 0 {
		t.Errorf("saw steps %v, must be one, not 0", got)
	}
}

func ended(p *Peer) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// TestADIOS2ReaderLeaves has a reader close after two steps: the writer must
// go on.
func TestADIOS2ReaderLeaves(t *testing.T) {
	stream := Stream{Dir: t.TempDir()}
	w := ADIOS2Writer(t, WriterOptions{Stream: stream, Steps: steps})
	r := ADIOS2Reader(t, ReaderOptions{Stream: stream, StopAfter: 2})
	wantSteps(t, r.Steps(zoo.Check{From: zoo.ADIOS2Stream}), upTo(2))
	w.OK()
}

// TestADIOS2HandControl steps a writer and a reader of several ranks by hand.
func TestADIOS2HandControl(t *testing.T) {
	stream := Stream{Dir: t.TempDir(), Ranks: 2, StepWait: true, Vars: []string{"array/f64", "value/"}}
	w := ADIOS2Writer(t, WriterOptions{Stream: stream, Steps: 2, Hold: true})
	r := ADIOS2Reader(t, ReaderOptions{Stream: stream, WriterRanks: 2})
	check := zoo.Check{Ranks: 2, From: zoo.ADIOS2Stream, ADIOS2Reader: true, Prefixes: stream.Vars}
	for want := range 2 {
		w.Next()
		w.Expect(fmt.Sprintf("STEP %d", want))
		line := "{" + r.Expect("{")
		if step, err := check.Line([]byte(line)); err != nil || step != want {
			t.Fatalf("step %d: %v", step, err)
		}
		r.Next()
	}
	w.Expect("HOLD")
	w.Next()
	r.OK()
	w.OK()
}

// TestADIOS2Operator has one compressed variable in the stream.
func TestADIOS2Operator(t *testing.T) {
	stream := Stream{Dir: t.TempDir()}
	w := ADIOS2Writer(t, WriterOptions{Stream: stream, Steps: 2, Operator: "bzip2"})
	r := ADIOS2Reader(t, ReaderOptions{Stream: stream, Steps: 2})
	wantSteps(t, r.Steps(zoo.Check{From: zoo.ADIOS2Stream}), upTo(2))
	w.OK()
}

// TestPeersNoticeFaults gives the reader a wrong idea of the writer: a peer
// that accepts everything proves nothing.
func TestPeersNoticeFaults(t *testing.T) {
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5"}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 2}).OK()
	tests := []struct {
		name   string
		change func(o *ReaderOptions)
		want   string
	}{
		{"wrong ranks", func(o *ReaderOptions) { o.WriterRanks = 2 }, "MISMATCH rank 0 step 0: array/char has shape [5] must be [10]"},
		{"strict", func(o *ReaderOptions) { o.WeftWriter = true }, "MISMATCH rank 0 step 0: array/i8 is missing"},
		{"number of steps", func(o *ReaderOptions) { o.Steps = 3 }, "MISMATCH rank 0 step 1: saw 2 steps, must be 3"},
		{"missing file", func(o *ReaderOptions) {
			o.Name, o.Params = "missing.bp", map[string]string{"OpenTimeoutSecs": "1"}
		}, "FAILED RuntimeError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := ReaderOptions{Stream: file}
			tt.change(&o)
			r := ADIOS2Reader(t, o)
			if err := r.Wait(); err == nil {
				t.Error("exit status 0")
			}
			if out := r.Stdout(); !strings.Contains(out, tt.want) {
				t.Errorf("must say %q, said:\n%s", tt.want, complaints(out))
			}
		})
	}
}

func TestBPLS(t *testing.T) {
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5"}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 2}).OK()
	got := strings.Split(BPLS(t, file.Dir, "zoo.bp"), "\n")
	for _, v := range zoo.Vars(1) {
		named := func(line string) bool {
			return strings.Contains(line, "  "+v.Name+" ") && strings.Contains(line, v.Type)
		}
		if !v.WeftOnly && !slices.ContainsFunc(got, named) {
			t.Errorf("bpls shows no %s of type %s", v.Name, v.Type)
		}
	}
}

// TestReorganize copies a file into a stream and reads it there.
func TestReorganize(t *testing.T) {
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5", Vars: []string{"array/", "shape/rows", "value/f64"}}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 2}).OK()
	copier := Reorganize(t, file.Dir, "zoo.bp", "BP5", "", "copy", "SST", "DataTransport=WAN")
	stream := file
	stream.Name, stream.Engine, stream.NoAttributes = "copy", "SST", true
	r := ADIOS2Reader(t, ReaderOptions{Stream: stream, Steps: 2, Quiet: true})
	r.OK()
	copier.OK()
}

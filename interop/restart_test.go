package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// What a killed side leaves is no obstacle to the next one.

// TestF25RestartAfterKill: the four processes of a job are killed with SIGKILL
// while they wait for readers, and started again under the same names, several
// times: each start works, and after the last, orderly one nothing is left.
func TestF25RestartAfterKill(t *testing.T) {
	weft := buildWeft(t)
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5", Ranks: 4, Vars: few}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 3}).OK()
	start := func(t *testing.T) []*testutil.Process {
		return byHand(weftRank)(t, file.Dir, 4, []string{weft, "pipe", "zoo.bp", "s"})
	}
	contact := filepath.Join(file.Dir, "s.sst")
	for i := range testutil.Count(t, 3, 20) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			before := modified(contact)
			job := start(t)
			eventually(t, "a new contact file", func() bool { return modified(contact) != before })
			for _, p := range job {
				p.Kill()
				<-p.Done()
			}
		})
	}
	job := start(t)
	dump := testutil.Start(t, file.Dir, nil, weft, "dump", "--json", "--timeout", "30s", "s")
	if err := dump.Wait(); err != nil {
		t.Error(err)
	}
	for _, p := range job {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantNoFiles(t, file.Dir, "zoo.bp")
}

// modified is when a file was written last; the zero time if there is none.
func modified(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// TestF32RestartWithAnotherType: after kill -9 of the writer its contact file is
// there or deleted; the next writer of the name has other types. Both Weft and
// real readers get what is new.
func TestF32RestartWithAnotherType(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for _, reader := range []kind{weftKind(2), adios2Kind(1)} {
			t.Run(fmt.Sprintf("file deleted %v, %v", deleted, reader), func(t *testing.T) {
				dir := t.TempDir()
				name := filepath.Join(dir, "zoo")
				old := WeftWriter(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: 2, Vars: few, Params: map[string]string{"RendezvousReaderCount": "0"}}, Hold: true, Steps: 1})
				old.Expect("HOLD")
				old.Kill()
				<-old.Done()
				if deleted {
					if err := os.Remove(name + ".sst"); err != nil {
						t.Fatal(err)
					}
				}
				// The same name, and one of its variables as another type.
				o := ReaderOptions{Stream: Stream{Dir: dir, Vars: []string{"value/"}}, Steps: 3}
				r := startReader(t, reader, weftKind(2), o)
				w := WeftWriter(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: 2, Vars: []string{"value/"}}, Steps: 3})
				wantAll(t, stepsOf(t, r, weftKind(2), o), 3)
				w.OK()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := retyped(ctx, name); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// retyped writes and reads a stream with value/f64 as integers.
func retyped(ctx context.Context, name string) error {
	read := make(chan error, 1)
	go func() {
		r, err := sst.Open(ctx, name, sst.ReaderConfig{})
		if err != nil {
			read <- err
			return
		}
		defer r.Close()
		st, err := r.BeginStep(ctx)
		if err != nil {
			read <- err
			return
		}
		defer st.End()
		_, err = step.Lookup[int32](st, "value/f64")
		read <- err
	}()
	w, err := sst.Create(ctx, name, sst.WriterConfig{})
	if err != nil {
		return err
	}
	defer w.Close()
	v, err := sst.Define[int32](w, "value/f64", step.GlobalValue())
	if err != nil {
		return err
	}
	st, err := w.BeginStep(ctx)
	if err != nil {
		return err
	}
	if err := v.Put(st, step.Box{}, []int32{7}); err != nil {
		return err
	}
	return errors.Join(st.End(ctx), w.Close(), <-read)
}

// TestF10PlaneIsTold: both sides tell which data plane is in effect, also towards
// real peers; one that cannot be had is an error at once, which names it.
func TestF10PlaneIsTold(t *testing.T) {
	t.Run("told", func(t *testing.T) {
		dir := t.TempDir()
		r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, WeftWriter: true, Steps: 1})
		z := createZoo(t, filepath.Join(dir, "zoo"), 1, sst.Params{})
		z.Skip = func(v zoo.Var) bool { return !zoo.Check{Prefixes: few}.Wants(v.Name) }
		put(t, z, 0, 1)
		if i := z.W.Info(); i.Plane != "native,evpath" || len(i.Readers) != 1 || i.Readers[0].Plane != "evpath" || i.Readers[0].Carrier != "tcp" {
			t.Errorf("the writer says %+v", i)
		}
		finish(t, z)
		r.OK()

		w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Vars: few}, Steps: 1})
		ours := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{})
		if i := ours.Info(); i.Plane != "evpath" || i.Writer == "" {
			t.Errorf("the reader says %+v", i)
		}
		if _, err := readRest(t.Context(), ours, fewCheck(1), nil); err != nil {
			t.Error(err)
		}
		w.OK()
	})
	t.Run("forced", func(t *testing.T) {
		for _, plane := range []string{"RDMA", "ucx", "MPI"} {
			_, err := sst.Open(t.Context(), filepath.Join(t.TempDir(), "zoo"), sst.ReaderConfig{Params: sst.Params{DataTransport: plane, OpenTimeoutSecs: 1}})
			if !errors.Is(err, sst.ErrParam) && !errors.Is(err, sst.ErrPlane) {
				t.Errorf("DataTransport=%s gave %v", plane, err)
			}
		}
	})
}

package interop

import (
	"os"
	"path/filepath"
	"testing"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/interop/zoo"
)

func TestZZTry(t *testing.T) {
	dir := "/tmp/ip/reo"
	os.RemoveAll(dir)
	os.MkdirAll(dir, 0o755)
	done := make(chan error, 1)
	go func() {
	w, err := sst.Create(t.Context(), filepath.Join(dir, "zoo"), sst.WriterConfig{Ranks: 3})
	if err != nil { done <- err; return }
	defer w.Close()
	z := ZooWriter{W: w, Ranks: 3, Skip: func(v zoo.Var) bool { return v.Kind == zoo.LocalArray || v.Name == "special/str" }}
	done <- z.Write(t.Context(), 4)
	}()
	c := Reorganize(t, dir, "zoo", "SST", "DataTransport=WAN", "copy.bp", "BP5", "")
	c.OK()
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Log(c.Stderr())
	t.Log(BPLS(t, dir, "-l", "copy.bp"))

	r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Name: "copy.bp", Engine: "BP5"}, WriterRanks: 3, WeftWriter: true, Steps: 4, Quiet: true})
	r.Wait()
	t.Log(complaints(r.Stdout()))
}

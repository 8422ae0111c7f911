package sst_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// TestWriterScreen publishes no file. Somebody carries the line to the reader.
func TestWriterScreen(t *testing.T) {
	var screen bytes.Buffer
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{Screen: &screen, Params: sst.Params{RegistrationMethod: "screen"}})
	empty(t, name)
	if got := w.Info().Policy.Registration; got != "Screen" {
		t.Errorf("registration by %q", got)
	}
	line := strings.Split(screen.String(), "\n")[1]
	other := streamName(t)
	writeText(t, other+".sst", "#ADIOS2-SST v0\n"+strings.TrimSpace(line))
	x := define(t, w, 10)
	r := attach(t, other, sst.ReaderConfig{})
	x.must(t)
	done := async(w.Close)
	if seen, err := drain(bounded(t), r); err != nil || len(seen) != 1 {
		t.Errorf("%v, %v", seen, err)
	}
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
	if !exists(other + ".sst") {
		t.Error("somebody else's file was removed")
	}
	empty(t, name)
}

// TestWriterScreenIsGone fails on all ranks: no reader could come.
func TestWriterScreenIsGone(t *testing.T) {
	r, gone := io.Pipe()
	r.Close()
	c := &crew{t: t, name: streamName(t)}
	c.join(2)
	errs := c.create(bounded(t), func(int) sst.WriterConfig {
		return sst.WriterConfig{Screen: gone, Params: sst.Params{RegistrationMethod: "Screen"}}
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestDataInterface tells readers another address for data, each process its own.
func TestDataInterface(t *testing.T) {
	c := &crew{t: t, name: streamName(t), part: 8}
	c.ranks = cohort.Local(2)
	c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
		p := sst.Params{RendezvousReaderCount: none()}
		if rank == 1 {
			p.DataInterface = "lo" // it need not be alike everywhere
		}
		return sst.WriterConfig{Params: p}
	}))
	r := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off", DataInterface: "lo"}})
	c.step()
	if err := consecutive(c.finish(r), 0, 1); err != nil {
		t.Error(err)
	}
	_, err := sst.Open(bounded(t), c.name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{DataInterface: "no-such-interface"}})
	if !errors.Is(err, sst.ErrParam) || !strings.Contains(err.Error(), "no-such-interface") {
		t.Errorf("a reader without such an interface: %v", err)
	}
}

// TestEffective lists what works in a stream, with defaults.
func TestEffective(t *testing.T) {
	p := sst.Params{QueueLimit: 3, QueueFullPolicy: "block", QueueLimitBytes: 3 << 20, BlockAt: "beginstep", RendezvousReaderCount: none()}
	list, err := p.Effective(sst.WriterSide)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	all := map[string]string{}
	for _, e := range list {
		all[e.Name] = e.Value
		if e.Set {
			set[e.Name] = e.Value
		}
	}
	if d := cmp.Diff(map[string]string{"QueueLimit": "3", "QueueLimitBytes": "3MiB", "BlockAt": "BeginStep", "RendezvousReaderCount": "0"}, set); d != "" {
		t.Errorf("set:\n%s", d)
	}
	for name, want := range map[string]string{"QueueFullPolicy": "Block", "MarshalMethod": "BP5", "QueueWarnBytes": "Auto", "StepDistributionMode": "AllToAll", "RegistrationMethod": "File"} {
		if all[name] != want {
			t.Errorf("%s is %q, want %q", name, all[name], want)
		}
	}
	if _, ok := all["OpenTimeoutSecs"]; ok {
		t.Error("a reader's parameter is in effect at a writer")
	}
	if d := cmp.Diff("RendezvousReaderCount=0 QueueLimit=3 QueueLimitBytes=3MiB BlockAt=beginstep", sst.Params{
		QueueLimit: 3, QueueLimitBytes: 3 << 20, BlockAt: "beginstep", RendezvousReaderCount: none(), StatsLevel: 0, QueueFullPolicy: "Block",
	}.String()); d != "" {
		t.Errorf("as text:\n%s", d)
	}
	_, err = p.Effective(sst.ReaderSide)
	if !errors.Is(err, sst.ErrParam) {
		t.Errorf("at a reader: %v", err)
	}
	if got := (sst.Params{}).String(); got != "" {
		t.Errorf("nothing set: %q", got)
	}
}

// TestBytesAsText goes there and back.
func TestBytesAsText(t *testing.T) {
	for _, c := range []struct {
		text, want string
		n          uint64
	}{{"1024", "1KiB", 1 << 10}, {"1025", "1025", 1025}, {"3 MiB", "3MiB", 3 << 20}, {"2048KiB", "2MiB", 2 << 20}, {"1tib", "1TiB", 1 << 40}, {"12B", "12", 12}} {
		p, err := sst.ParseParams(map[string]string{"QueueLimitBytes": c.text})
		if err != nil || p.QueueLimitBytes != c.n || p.String() != "QueueLimitBytes="+c.want {
			t.Errorf("%q: %d, %q, %v", c.text, p.QueueLimitBytes, p, err)
		}
		p, err = sst.ParseParams(map[string]string{"QueueWarnBytes": c.text})
		if err != nil || p.QueueWarnBytes == nil || *p.QueueWarnBytes != c.n || p.String() != "QueueWarnBytes="+c.want {
			t.Errorf("%q: %v, %q, %v", c.text, p.QueueWarnBytes, p, err)
		}
	}
}

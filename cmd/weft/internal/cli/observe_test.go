package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// Looking does not disturb: a writer keeps a step in reserve, ls and an observing
// dump see it, and nobody is counted.
func TestObserve(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	session, err := sst.NewSession(t.Context(), sst.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	w, err := sst.Create(t.Context(), name, sst.WriterConfig{Session: session, Params: sst.Params{RendezvousReaderCount: new(int), ReserveQueueLimit: 1, QueueLimit: 2}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := sst.Define[int32](w, "v", step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	writeSteps(t, w, v, 3)
	if r := run(t.Context(), "ls", "-v", "--timeout", "30s", name); r.code != exitOK || !strings.Contains(r.stdout, "step:          2\n") || !strings.Contains(r.stdout, "attached as:   observer") {
		t.Errorf("ls: %+v", r)
	}
	if r := run(t.Context(), "dump", "--observe", "--json", "--steps", "1", "--timeout", "30s", name); r.code != exitOK || !strings.HasPrefix(r.stdout, `{"step":2,`) {
		t.Errorf("dump: %+v", r)
	}
	writeSteps(t, w, v, 5) // which a reader would hold up
	if st := w.Info(); st.NextStep != 8 || len(st.Readers) > 0 {
		t.Errorf("%+v", st)
	}
	if r := run(t.Context(), "ls", "-v", "--observe=false", "--timeout", "30s", name); r.code != exitOK || strings.Contains(r.stdout, "observer") {
		t.Errorf("ls as a reader: %+v", r)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// ADIOS2 writers know no observers: that is said, and nobody attaches.
func TestObserveADIOS2(t *testing.T) {
	name := adios2Writer(t)
	for _, command := range []string{"ls", "dump"} {
		r := run(t.Context(), command, "--observe", name)
		if r.code != exitUsage || !strings.Contains(r.stderr, "is ADIOS2, which knows no observers") {
			t.Errorf("%s: %+v", command, r)
		}
	}
	if weft, err := sst.IsWeft(name); weft || err != nil {
		t.Errorf("IsWeft: %v, %v", weft, err)
	}
	if observeWeft.of(name) || !observeOnly.of(name) || observeNever.of(name) {
		t.Error("an ADIOS2 writer is observed")
	}
	if _, err := sst.IsWeft(filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("no file, no error")
	}
}

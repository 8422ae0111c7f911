package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/sst"
)

// TestCheckTarget: pipe writes streams. Who names a file has mistaken it, and is
// told before anything is opened.
func TestCheckTarget(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ in, out, says string }{
		"a stream":            {"a.bp", filepath.Join(dir, "s"), ""},
		"with its suffix":     {"a.bp", filepath.Join(dir, "s.sst"), ""},
		"a file of that name": {"a.bp", plain, ""},
		"a folder":            {"a.bp", dir, "is a folder"},
		"a folder to be":      {"a.bp", filepath.Join(dir, "new") + "/", "is a folder"},
		"a BP5 file":          {"a.bp", filepath.Join(dir, "b.bp"), "looks like a BP5 file"},
		"itself":              {"s", "s", "both source and target"},
		"itself, by suffix":   {"s.sst", "s", "both source and target"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkTarget(c.in, c.out)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || codeOf(err) != exitUsage {
				t.Errorf("%v, exit code %d", err, codeOf(err))
			}
		})
	}
}

func TestTargetParams(t *testing.T) {
	p, err := targetParams(nil)
	if err != nil || p.QueueLimit != pipeQueue {
		t.Errorf("a limit of %d, %v", p.QueueLimit, err)
	}
	for _, bad := range []string{"NoSuch=1", "QueueLimit=x", "QueueLimit", "AlwaysProvideLatestTimestep=true"} {
		if _, err := targetParams([]string{bad}); codeOf(err) != exitUsage {
			t.Errorf("%s: %v, exit code %d", bad, err, codeOf(err))
		}
	}
}

// follower is a rank of a team to which rank 0 has told its plan.
func follower(p plan) *team {
	return &team{rank: 1, size: 2, plan: &p, changed: make(chan struct{})}
}

// aFile opens a file of the fixtures as a source.
func aFile(t *testing.T) *fileSource {
	t.Helper()
	r, err := bp.Open(t.Context(), bpfixture.Extract(t, "main-nostats"), bp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &fileSource{Reader: r}
}

// TestPipeAgrees: the ranks have opened the file each on their own, while it may
// be growing. They copy what rank 0 has seen, and find out if they cannot.
func TestPipeAgrees(t *testing.T) {
	f := aFile(t)
	ranks, steps := f.Ranks(), f.NumSteps()
	for name, c := range map[string]struct {
		theirs plan
		follow bool
		steps  int // -1: to the end
		says   string
	}{
		"the same":              {plan{ranks, steps}, false, -1, ""},
		"fewer steps":           {plan{ranks, steps - 1}, false, steps - 1, ""},
		"more steps":            {plan{ranks, steps + 1}, false, 0, "is it the same file?"},
		"other ranks":           {plan{ranks + 1, steps}, false, 0, "is it the same file?"},
		"followed":              {plan{ranks, -1}, true, -1, ""},
		"followed, other ranks": {plan{ranks + 1, -1}, true, 0, "is it the same file?"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pipe{in: "a.bp", opt: pipeOptions{follow: c.follow}, team: follower(c.theirs)}
			got, err := p.agree(t.Context(), f)
			switch {
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "a.bp") {
					t.Errorf("%v", err)
				}
			case err != nil || got.Steps != c.steps:
				t.Errorf("%+v, %v; want %d steps", got, err, c.steps)
			}
		})
	}
}

// TestPipeAgreesWithNobody: rank 0 is gone before it has said what to do.
func TestPipeAgreesWithNobody(t *testing.T) {
	gone := follower(plan{})
	gone.plan, gone.lost = nil, true
	p := &pipe{in: "a.bp", team: gone}
	if _, err := p.agree(t.Context(), aFile(t)); !errors.Is(err, errTeam) {
		t.Errorf("%v", err)
	}
}

// TestServed: readers are counted once each, and only if they got something.
func TestServed(t *testing.T) {
	zero := 0
	w, err := sst.Create(t.Context(), filepath.Join(t.TempDir(), "s"), sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: &zero, NetworkInterface: "lo"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := &served{w: w, name: "s\x1b", readers: map[string]bool{}}
	s.sent()
	for range 2 {
		s.readers["10.0.0.1:5"] = true
		s.sent()
	}
	var b bytes.Buffer
	s.say(&b)
	if want := "weft: s\\x1b: 3 steps sent, to 1 reader\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestFinishPipe: what could not be copied is an error of the whole, although the
// target ends well; who is interrupted is not kept waiting.
func TestFinishPipe(t *testing.T) {
	boom := errors.New("boom")
	interrupted, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	for name, c := range map[string]struct {
		ctx  context.Context
		told bool
		err  error
		want error
	}{
		"well":          {t.Context(), false, nil, nil},
		"source failed": {t.Context(), false, boom, boom},
		"things told":   {t.Context(), true, nil, errReported},
		"told, failed":  {t.Context(), true, boom, boom},
		"interrupted":   {interrupted, false, boom, errInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			zero := 0
			w, err := sst.Create(t.Context(), filepath.Join(t.TempDir(), "s"), sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: &zero, NetworkInterface: "lo"}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			k := &copier{w: w, team: &team{size: 1}, served: &served{w: w, readers: map[string]bool{}}, told: map[string]bool{}}
			if c.told {
				k.told["x"] = true
			}
			if err := finishPipe(c.ctx, w, k, c.err); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

package memmon

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/hooks"
)

func TestHooksOfOthers(t *testing.T) {
	found := hooks.Report{Library: "/lib/libc.so.6", Hooks: []hooks.Hook{{Function: "munmap", Kind: hooks.Patched, Owner: "/lib/libucm.so"}}}
	for what, c := range map[string]struct {
		report hooks.Report
		err    error
		serves bool
		logged string // "": nothing
	}{
		"none":                {report: hooks.Report{Library: "/lib/libc.so.6"}},
		"not known":           {err: errFake},
		"nobody hears them":   {report: found, logged: "weft_memory_events.h"},
		"a monitor is served": {report: found, serves: true, logged: "fake serves"},
	} {
		a := testArbiter(t)
		calls := 0
		a.find = func() (hooks.Report, error) { calls++; return c.report, c.err }
		if c.serves {
			if err := a.Import(newFake()); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		log := slog.New(slog.NewTextHandler(&b, nil))
		one := a.Attach(ignore, log)
		two := a.Attach(ignore, log)
		s := a.Status()
		if calls != 1 || s.HooksErr != c.err || !slices.Equal(s.Hooks, c.report.Lines()) {
			t.Errorf("%s: after %d calls %q, %v", what, calls, s.Hooks, s.HooksErr)
		}
		if said := strings.Count(b.String(), "hooked"); said != strings.Count(b.String(), "libucm") || (said == 1) != (c.logged != "") || !strings.Contains(b.String(), c.logged) {
			t.Errorf("%s: %q", what, &b)
		}
		one()
		two()
		if !c.serves {
			if err := a.Choose("none"); err != nil || !slices.Equal(a.Status().Hooks, s.Hooks) {
				t.Errorf("%s: forgotten by another choice: %v", what, err)
			}
		}
	}
}

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/sst"
)

func TestMain(m *testing.M) {
	registerFakes()
	testscript.Main(leakChecked{m}, map[string]func(){"weft": func() { os.Exit(Main()) }})
}

// leakChecked looks for goroutines that the tests left behind.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// The scripts run the command as users do. Commands of their own:
//
//	fixture NAME...         unpacks datasets into the current folder
//	poke FILE OFFSET BYTE   changes a byte
//	cut FILE BYTES          keeps only so many bytes of a file
//	await FILE              waits until a file exists
//	gone GLOB               fails if something matches
func TestScripts(t *testing.T) {
	base := map[string]string{}
	for _, name := range bpfixture.Names() {
		base[name] = bpfixture.Extract(t, name)
	}
	testscript.Run(t, testscript.Params{
		Dir:      "testdata/script",
		Deadline: time.Now().Add(2 * time.Minute),
		Setup: func(e *testscript.Env) error {
			e.Setenv("TMPDIR", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fixture": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, name := range args {
					ts.Check(os.CopyFS(ts.MkAbs(name+".bp"), os.DirFS(base[name])))
				}
			},
			"poke": poke,
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.ParseInt(args[1], 10, 64)
				ts.Check(err)
				ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
			},
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				// Another process makes it: there is no event to wait for.
				tick, limit := time.NewTicker(time.Millisecond), time.After(time.Minute)
				defer tick.Stop()
				for {
					if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
						return
					}
					select {
					case <-tick.C:
					case <-limit:
						ts.Fatalf("%s does not appear", args[0])
					}
				}
			},
			"observed": func(ts *testscript.TestScript, _ bool, args []string) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for { // the writer tells nobody that an observer has come
					stat, err := sst.QueryStat(ctx, ts.MkAbs(args[0]), sst.StatConfig{})
					ts.Check(err)
					if slices.ContainsFunc(stat.Readers, func(r sst.AttachedReader) bool { return r.Observer && r.Active }) {
						return
					}
				}
			},
			"gone": func(ts *testscript.TestScript, _ bool, args []string) {
				list, err := filepath.Glob(ts.MkAbs(args[0]))
				ts.Check(err)
				if len(list) > 0 {
					ts.Fatalf("left behind: %v", list)
				}
			},
		},
	})
}

func poke(ts *testscript.TestScript, _ bool, args []string) {
	at, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	b, err := strconv.ParseUint(args[2], 0, 8)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt([]byte{byte(b)}, at)
	ts.Check(err)
	ts.Check(f.Close())
}

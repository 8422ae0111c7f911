package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := mainCode(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes besides 0 and 1.
const (
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it
)

// mainCode runs the program and returns its exit code.
func mainCode(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == roleWord:
		err = underParent(ctx, func(ctx context.Context) error { return runRole(ctx, args[1:]) })
	case len(args) > 0 && isShmWord(args[0]):
		err = underParent(ctx, func(ctx context.Context) error { return shmMain(ctx, args) })
	default:
		err = benchMain(ctx, args, stdout, stderr)
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "bench: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(stderr, err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return 1
}

// underParent runs what a process does that another one of us has started.
func underParent(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := watchStdin(ctx)
	defer cancel()
	return work(ctx)
}

var errUsage = errors.New("bench: bad command line")

// benchMain measures and prints.
func benchMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, asJSON, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.log, c.self = stderr, []string{self}
	c.command = strings.Join(append([]string{"go run ./bench"}, args...), " ")
	switch c.table {
	case shmTable:
		rep, err := runShm(ctx, c)
		return write(stdout, rep, err, asJSON, writeShmTable)
	case stepsTable:
		rep, err := runSteps(ctx, c)
		return write(stdout, rep, err, asJSON, writeStepsTable)
	case growthTable:
		rep, err := runGrowth(ctx, c)
		return write(stdout, rep, err, asJSON, c.writeGrowth)
	case mrTable:
		rep, err := runMR(ctx, c)
		return write(stdout, rep, err, asJSON, writeMRTable)
	}
	rep, err := run(ctx, c)
	return write(stdout, rep, err, asJSON, writeTable)
}

// writeGrowth writes what was asked for: the page of the documentation, or the same text without plots.
func (c config) writeGrowth(w io.Writer, r *growthReport) error {
	if c.docs != "" {
		return writeGrowthDocs(c.docs, r)
	}
	return writeGrowthPage(w, r, "")
}

// write writes a report, unless there is none.
func write[R any](w io.Writer, rep R, err error, asJSON bool, table func(io.Writer, R) error) error {
	if err != nil {
		return err
	}
	if !asJSON {
		return table(w, rep)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(rep)
}

// The tables.
const (
	socketsTable = "sockets"
	shmTable     = "shm"
	stepsTable   = "steps"
	growthTable  = "growth"
	mrTable      = "registrations"
)

// usual is what a table does unless it is told otherwise: how often each pair runs, and for how many seconds.
type usual struct {
	rounds  int
	seconds float64
}

var tables = map[string]usual{socketsTable: {5, 1.2}, shmTable: {5, 1.2}, stepsTable: {3, 1.2}, growthTable: {3, 1.2}, mrTable: {3, 0.15}}

// parseFlags reads the command line. The defaults take less than a quarter of an hour.
func parseFlags(args []string, stderr io.Writer) (c config, asJSON bool, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.rounds, "rounds", 0, "how often each pair runs (0: 5, of steps, growth and registrations 3)")
	f.Float64Var(&c.seconds, "seconds", 0, "how long each pair is measured in a round (0: 1.2, of registrations 0.15)")
	f.StringVar(&c.table, "table", socketsTable, "what is measured: steps over `sockets` against ADIOS2; shm: operations over shared memory against libfabric, and against a bare eventfd where the receiver sleeps; steps: within a node, against each data plane of ADIOS2, and against bare memory; growth: what a step costs with the number of variables, blocks and ranks; registrations: what the cache of registrations costs")
	only := f.String("only", "", "measure the rows and paths that match this `regexp`, as \"8 MiB, queue 1, put, get, Weft → ADIOS2\"")
	f.BoolVar(&asJSON, "json", false, "print JSON, with every sample")
	f.StringVar(&c.docs, "docs", "", "of growth: write performance.md and its plots into this `folder`, instead of a page without plots to stdout")
	f.StringVar(&c.profile, "cpuprofile", "", "write CPU profiles of the Weft processes, or of registrations of each cache, to this `folder`")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, false, err
		}
		return c, false, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 || c.rounds < 0 || !(c.seconds >= 0 && c.seconds <= 60) {
		return c, false, fmt.Errorf("%w: want no negative rounds, seconds up to 60, and no words besides flags", errUsage)
	}
	u, ok := tables[c.table]
	if !ok {
		return c, false, fmt.Errorf("%w: -table is one of %s, not %q", errUsage, strings.Join(slices.Sorted(maps.Keys(tables)), ", "), c.table)
	}
	c.rounds, c.seconds = cmp.Or(c.rounds, u.rounds), cmp.Or(c.seconds, u.seconds)
	if c.docs != "" && (c.table != growthTable || asJSON) {
		return c, false, fmt.Errorf("%w: -docs is for -table %s, without -json", errUsage, growthTable)
	}
	if c.table == shmTable {
		f.Visit(func(g *flag.Flag) {
			if g.Name == "seconds" || g.Name == "cpuprofile" {
				err = fmt.Errorf("%w: -%s is not for -table %s, whose rows have a fixed number of operations in processes of their own", errUsage, g.Name, shmTable)
			}
		})
		if err != nil {
			return c, false, err
		}
	}
	c.only, err = regexp.Compile(*only)
	if err != nil {
		return c, false, fmt.Errorf("%w: -only: %w", errUsage, err)
	}
	if c.profile != "" {
		if err := os.MkdirAll(c.profile, 0o755); err != nil {
			return c, false, err
		}
	}
	return c, asJSON, nil
}

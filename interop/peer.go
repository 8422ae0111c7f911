package interop

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// suite is the Debian release whose ADIOS2 the peers are: 2.10.2.
const suite = "trixie"

// newer is the Debian suite with a later release of ADIOS2: 2.12.1 when tried.
const newer = "sid"

// inside is where the folder of the peers' programs is shown in the root.
const inside = "/peers"

// Stream says what a peer opens, and how; writers and readers share it.
type Stream struct {
	Name   string // "" means "zoo"
	Dir    string // folder on the host in which Name lies, and in which the peer starts; required
	Ranks  int    // MPI processes; 0 and 1: one process without MPI
	Engine string // "SST" (also "") or "BP5"
	// Params are engine parameters. Unless said otherwise SST has DataTransport=WAN,
	// and OpenTimeoutSecs is 60.
	Params map[string]string
	// Vars, if any, limit the variables to names with one of these prefixes.
	Vars []string
	// NoAttributes: write none, or do not look at them.
	NoAttributes bool
	// StepWait: the peer waits for a line on stdin ([Peer.Next]) in each step: a
	// writer before BeginStep, a reader before EndStep. When its stdin ends
	// (Process.CloseInput) it closes in order instead.
	StepWait bool
	// StepDelay: the peer sleeps in each step: a writer after EndStep, a reader
	// before.
	StepDelay time.Duration
	Env       []string // added to the peer's environment
	// Suite is the Debian release whose ADIOS2 the peer is; "" means trixie.
	Suite string
	// Lock: a writer locks its definitions, a reader its selections, in the first
	// step.
	Lock  bool
	Local bool // all ranks in one process; for Weft cohorts only
	// Prefix is a command that runs what comes behind it, "ip netns exec NAME".
	Prefix []string
	// NoSharedMemory: the peer's sessions share no memory; Weft only.
	NoSharedMemory bool
	// DeniedRanks are those of which that holds although it does not of the others.
	DeniedRanks []int
}

// WriterOptions configure [ADIOS2Writer].
type WriterOptions struct {
	Stream
	Steps    int    // 0 means 10
	Hold     bool   // wait for a line on stdin before Close, after the line HOLD
	Operator string // compress "shape/big" with it; Debian has bzip2
	// Quiet: no lines STEP; Weft only.
	Quiet bool
	// NoLongDouble leaves out what later releases of ADIOS2 cannot read in Python.
	NoLongDouble bool
	// ContactMode is the permission of the contact file; Weft only.
	ContactMode fs.FileMode
	// Inside, if set, is a reader of this stream in the process of rank 0, in the writer's
	// own session. Its lines begin with INSIDE; Weft only.
	Inside *ReaderOptions `json:",omitempty"`
}

// ReaderOptions configure [ADIOS2Reader].
type ReaderOptions struct {
	Stream
	WriterRanks int           // of the writer, which the values depend on; 0 means 1
	WeftWriter  bool          // demand all that Weft can write; else ADIOS2's own losses are granted
	Piped       bool          // the writer is weft pipe, of a file of ADIOS2: nothing is lost, nor is there what only Weft can write
	Steps       int           // how many steps must be seen; 0 means any number
	StopAfter   int           // close after so many steps; 0 means read to the end
	Late        bool          // the first step need not be number 0
	Gaps        bool          // steps may be left out
	Timeout     time.Duration // of each BeginStep; 0 means a minute
	Quiet       bool          // no JSON on stdout
	Observer    bool          // Weft only: look on without being waited for
}

// Peer is a running program of ADIOS2.
type Peer struct {
	*testutil.Process
	t testing.TB
}

// ADIOS2Writer starts a real writer of the zoo. Its lines on stdout: "OPENING
// NAME", "READY" after Open (which waits for RendezvousReaderCount readers, by
// default 1), "STEP n" after each step, "HOLD", "DONE".
func ADIOS2Writer(t testing.TB, o WriterOptions) *Peer {
	t.Helper()
	return o.start(t, "writer.py", o.args())
}

func (o WriterOptions) args() []string {
	args := o.Stream.args()
	if o.Steps > 0 {
		args = append(args, "--steps", strconv.Itoa(o.Steps))
	}
	if o.Hold {
		args = append(args, "--hold")
	}
	if o.Operator != "" {
		args = append(args, "--operator", o.Operator)
	}
	return args
}

// ADIOS2Reader starts a real reader of the zoo, which checks all that it sees
// by itself. Its lines on stdout: "READY" after Open, one JSON object a step
// ([zoo.ExpectJSON]), "OK steps=N"; or "MISMATCH ..." with exit status 1.
func ADIOS2Reader(t testing.TB, o ReaderOptions) *Peer {
	t.Helper()
	return o.start(t, "reader.py", o.args())
}

func (o ReaderOptions) args() []string {
	args := append(o.Stream.args(), "--writer-ranks", strconv.Itoa(max(o.WriterRanks, 1)))
	switch {
	case o.WeftWriter:
		args = append(args, "--writer", "weft")
	case o.Piped:
		args = append(args, "--writer", "pipe")
	}
	if o.Steps > 0 {
		args = append(args, "--steps", strconv.Itoa(o.Steps))
	}
	if o.StopAfter > 0 {
		args = append(args, "--stop-after", strconv.Itoa(o.StopAfter))
	}
	if o.Late {
		args = append(args, "--late")
	}
	if o.Gaps {
		args = append(args, "--gaps")
	}
	if o.Quiet {
		args = append(args, "--quiet")
	}
	if o.Timeout > 0 {
		args = append(args, "--timeout", seconds(o.Timeout))
	}
	return args
}

// args are the arguments that both programs understand.
func (s Stream) args() []string {
	args := []string{s.name()}
	if s.Engine != "" {
		args = append(args, "--engine", s.Engine)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		args = append(args, "--param", key+"="+s.Params[key])
	}
	if len(s.Vars) > 0 {
		args = append(args, "--vars", strings.Join(s.Vars, ","))
	}
	if s.NoAttributes {
		args = append(args, "--no-attributes")
	}
	if s.StepWait {
		args = append(args, "--step-wait")
	}
	if s.StepDelay > 0 {
		args = append(args, "--step-delay", seconds(s.StepDelay))
	}
	if s.Lock {
		args = append(args, "--lock")
	}
	return args
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// start starts a program of the peers' folder.
func (s Stream) start(t testing.TB, program string, args []string) *Peer {
	t.Helper()
	// -B: the folder stays as it is.
	command := append([]string{"python3", "-B", inside + "/" + program}, args...)
	if s.Ranks > 1 {
		command = append([]string{"mpirun", "-n", strconv.Itoa(s.Ranks)}, command...)
	}
	return s.run(t, command)
}

// run starts a command inside the usual root, in dir.
func run(t testing.TB, dir string, env, command []string) *Peer {
	t.Helper()
	return Stream{Dir: dir, Env: env}.run(t, command)
}

// run starts a command inside the root, in the folder of the stream.
func (s Stream) run(t testing.TB, command []string) *Peer {
	t.Helper()
	if s.Dir == "" {
		t.Fatal("interop: Stream.Dir is not set")
	}
	programs := filepath.Join(testutil.ModuleRoot(t), "interop", "peers")
	how := testutil.Run{Dir: s.Dir, Binds: []string{s.Dir, programs + ":" + inside}, Env: append(ownPorts(), s.Env...), Prefix: s.Prefix}
	return &Peer{s.root(t).Start(t, how, command[0], command[1:]...), t}
}

// root is where the peer runs.
func (s Stream) root(t testing.TB) *testutil.PeerRoot {
	t.Helper()
	switch s.Suite {
	case "", suite:
		return testutil.Root(t, suite)
	case newer:
		return testutil.MovingRoot(t, newer)
	}
	return testutil.Root(t, s.Suite)
}

// Next lets a peer with StepWait (or Hold) go on.
func (p *Peer) Next() {
	p.t.Helper()
	p.Send("go")
}

// OK waits until the peer ends and fails the test unless all went well for it.
func (p *Peer) OK() {
	p.t.Helper()
	if err := p.Wait(); err != nil {
		p.t.Errorf("%v\nstdout ended with:\n%s", err, complaints(p.Stdout()))
	}
}

// complaints are the lines that are no JSON.
func complaints(stdout string) string {
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "{") })
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// Steps waits until a reader ends, fails the test unless all went well for it,
// and compares what it printed with the table: a second opinion beside the
// peer's own. It returns the numbers of the steps.
func (p *Peer) Steps(check zoo.Check) []int {
	p.t.Helper()
	check.ADIOS2Reader = true
	var steps []int
	for {
		line, ok := p.Line()
		if !ok {
			break
		}
		if !strings.HasPrefix(line, "{") {
			continue
		}
		step, err := check.Line([]byte(line))
		if err != nil {
			p.t.Error(err)
		}
		steps = append(steps, step)
	}
	p.OK()
	return steps
}

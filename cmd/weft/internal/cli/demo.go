package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

type demoOptions struct {
	size, steps int
	interval    time.Duration
	plane       string
}

// Bounds of the demo, so that nobody fills a machine by a typing error.
const (
	maxDemoSize  = 4096
	maxDemoSteps = 100000
)

func newDemo(env Env) *cobra.Command {
	var opt demoOptions
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show a stream at work between two processes of this machine",
		Example: `  weft demo --steps 100`,
		Long: `Start a process that simulates the cooling of a plate and writes each step to a
stream, and another one that attaches through the contact file, reads the steps
and compares them with the analytic solution. Takes about ten seconds and leaves
nothing behind. The exit code is 0 if all steps arrived and were right.`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(); err != nil {
				return err
			}
			return runDemo(cmd.Context(), env, opt)
		},
	}
	opt.flags(cmd)
	return cmd
}

func (o *demoOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.size, "size", 256, "points of the plate in each direction")
	f.IntVar(&o.steps, "steps", 300, "steps to send")
	f.DurationVar(&o.interval, "interval", 25*time.Millisecond, "time between steps")
	f.StringVar(&o.plane, "plane", "", "data plane: native (shared memory) or evpath (sockets); empty takes the best that works")
}

func (o *demoOptions) check() error {
	if o.size < 8 || o.size > maxDemoSize || o.steps < 1 || o.steps > maxDemoSteps || o.interval < 0 {
		return usagef("--size is 8 to %d, --steps 1 to %d, --interval not negative", maxDemoSize, maxDemoSteps)
	}
	switch o.plane {
	case "", "native", "evpath":
		return nil
	}
	return usagef("--plane is native or evpath, not %q", o.plane)
}

// params are the engine parameters of a process of the demo; p says what it has of its own.
func (o *demoOptions) params(p sst.Params) sst.Params {
	p.DataTransport = o.plane
	return p
}

func (o *demoOptions) args(command, dir string) []string {
	return []string{command, "--size", strconv.Itoa(o.size), "--steps", strconv.Itoa(o.steps), "--interval", o.interval.String(), "--plane", o.plane, dir}
}

// streamName is the stream in the demo's folder.
func streamName(dir string) string { return filepath.Join(dir, "heat") }

// report is what the reading process tells of each step, as a line of JSON.
type report struct {
	Step      uint64
	Bytes     int
	Deviation float64 // from the analytic solution; -1 if it is not a number
	Plane     string  // by which the reader has its data
	Picture   picture
}

func runDemo(ctx context.Context, env Env, opt demoOptions) (err error) {
	dir, err := os.MkdirTemp("", "weft-demo-")
	if err != nil {
		return fmt.Errorf("no folder for the stream can be made in %s (TMPDIR names another one): %w", os.TempDir(), err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	env.Stderr = shared(env.Stderr)
	writer, err := startChild(ctx, env, opt.args(demoWriterName, dir), nil)
	if err != nil {
		return err
	}
	reports, reporter := io.Pipe()
	reader, err := startChild(ctx, env, opt.args(demoReaderName, dir), reporter)
	if err != nil {
		cancel(err)
		return errors.Join(err, writer.wait())
	}
	out := newOutput(env.Stdout)
	out.printf("process %d writes the temperature of a plate, %d x %d double, to the stream %s\n", writer.pid(), opt.size, opt.size, streamName(dir))
	out.printf("process %d attaches to it and reads\n", reader.pid())
	if err := out.flush(); err != nil {
		cancel(err) // nobody sees it; the processes end, and the folder goes
	}
	go func() { // a dead child ends the other
		if err := writer.wait(); err != nil {
			cancel(err)
		}
	}()
	sum, watchErr := watchDemo(env, opt, reports)
	reports.Close() // lest a process that still talks waits for us
	if watchErr != nil {
		cancel(watchErr)
	}
	readerErr := reader.wait()
	if readerErr != nil {
		cancel(readerErr)
	}
	writerErr := writer.wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause // the first thing that went wrong; the rest follows from it
	}
	if err := errors.Join(writerErr, readerErr, watchErr); err != nil {
		return err
	}
	return sum.print(env.Width, out, opt)
}

// shared makes a writer safe for several goroutines: the processes of the demo
// have one standard error. They inherit a file as it is.
func shared(w io.Writer) io.Writer {
	if _, ok := w.(*os.File); ok {
		return w
	}
	return &lockedWriter{w: w}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// summary is the sum of all reports.
type summary struct {
	steps     int
	bytes     int
	begin     time.Time
	last      time.Time
	deviation float64
	plane     string
	picture   picture
}

// watchDemo takes the reports in and shows them.
func watchDemo(env Env, opt demoOptions, r io.Reader) (*summary, error) {
	sum := &summary{begin: time.Now()}
	show := newDisplay(env, opt)
	defer show.close()
	lines := json.NewDecoder(bufio.NewReader(r))
	for {
		var rep report
		err := lines.Decode(&rep)
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, fmt.Errorf("report of the reading process: %w", err)
		}
		if rep.Step != uint64(sum.steps) {
			return sum, fmt.Errorf("step %d came after %d steps", rep.Step, sum.steps)
		}
		if sum.steps == 0 {
			sum.begin = time.Now()
		}
		sum.steps++
		sum.bytes += rep.Bytes
		sum.last, sum.picture, sum.plane = time.Now(), rep.Picture, rep.Plane
		if rep.Deviation < 0 {
			rep.Deviation = math.Inf(1)
		}
		sum.deviation = max(sum.deviation, rep.Deviation)
		show.step(rep)
	}
}

// print writes the summary and judges. Width is that of the terminal, 0 if
// there is none.
func (s *summary) print(width int, out *output, opt demoOptions) error {
	if width == 0 {
		out.printf("the plate at the end:\n%s", s.picture.render(false))
	}
	const mega = 1e6
	seconds := s.last.Sub(s.begin).Seconds()
	out.printf("%d of %d steps, %.1f MB in %.1f s: %.1f MB/s at the pace of the simulation\n",
		s.steps, opt.steps, float64(s.bytes)/mega, seconds, float64(s.bytes)/mega/max(seconds, 1e-3))
	out.printf("data plane: %s\n", planeText(s.plane))
	tol := tolerance(opt.size)
	verdict := "ok"
	if !(s.deviation <= tol) {
		verdict = "TOO LARGE"
	}
	out.printf("largest deviation from the analytic solution %.2g, tolerance %.2g (h squared): %s\n", s.deviation, tol, verdict)
	if err := out.flush(); err != nil {
		return err
	}
	switch {
	case s.steps != opt.steps:
		return fmt.Errorf("%d of %d steps arrived", s.steps, opt.steps)
	case verdict != "ok":
		return fmt.Errorf("the steps are not what was computed: deviation %.2g, tolerance %.2g", s.deviation, tol)
	}
	return nil
}

// child is a process of the demo. It ends when its standard input does, so that
// it never outlives this process.
type child struct {
	cmd  *exec.Cmd
	name string
	done chan struct{}
	err  error
}

// childGrace is the time that children have to leave cleanly.
const childGrace = 10 * time.Second

// startChild starts this program again. Its standard output goes to stdout,
// which is closed when it has ended; nil discards it.
func startChild(ctx context.Context, env Env, args []string, stdout io.WriteCloser) (*child, error) {
	if env.Self[0] == "" {
		return nil, errors.New("the path of this program is not known")
	}
	cmd := exec.CommandContext(ctx, env.Self[0], args...)
	cmd.Args[0] = env.Self[1]
	// Ctrl-C of a terminal goes to this process alone, which ends the others: one
	// message, and its folder is removed after they have gone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = env.Stderr
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.Cancel = stdin.Close
	cmd.WaitDelay = childGrace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the process %s: %w", args[0], err)
	}
	c := &child{cmd: cmd, name: args[0], done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := cmd.Wait(); err != nil {
			c.err = fmt.Errorf("%s: %w", c.name, err)
		}
		if stdout != nil {
			c.err = errors.Join(c.err, stdout.Close())
		}
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// wait returns when the process has ended, and with what.
func (c *child) wait() error {
	<-c.done
	return c.err
}

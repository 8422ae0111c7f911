package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

func writeLarge(ctx context.Context, name string, rows, cols uint64) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{})
	if err != nil {
		return err
	}
	def, err := w.DefineUntyped("big", step.Int64, nil, step.GlobalArray(rows, cols))
	if err != nil {
		return err
	}
	st, err := w.BeginStep(ctx)
	if err != nil {
		return err
	}
	if err := st.PutBytes(def, step.All, ramp64(int(rows*cols))); err != nil {
		return err
	}
	return errors.Join(st.End(ctx), w.Finish(ctx), w.Close())
}

// Every dataset goes through a stream and comes out as a direct dump shows it.
func TestPipeOfEveryFixture(t *testing.T) {
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			in, out := bpfixture.Extract(t, name), filepath.Join(t.TempDir(), "s")
			piped := make(chan result, 1)
			go func() { piped <- run(ctx, "pipe", in, out) }()
			got := run(ctx, "dump", "--json", "--timeout", "30s", out)
			if p := <-piped; p.code != exitOK {
				t.Errorf("pipe: exit code %d, stderr %q", p.code, p.stderr)
			}
			// On a busy machine stderr explains waits.
			if want := run(ctx, "dump", "--json", in); got.code != exitOK || got.stdout != want.stdout {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// The source of a pipe dies: the target is closed in an orderly way, and the
// exit code is not 0 (F90).
func TestPipeSourceDies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	session, err := sst.NewSession(ctx, sst.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	piped, dumped := make(chan result, 1), make(chan result, 1)
	go func() { piped <- run(ctx, "pipe", "--timeout", "30s", in, out) }()
	go func() { dumped <- run(ctx, "dump", "--json", "--timeout", "30s", out) }()
	w, err := sst.Create(ctx, in, sst.WriterConfig{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	v, err := sst.Define[int32](w, "v", step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	for n := range int32(2) {
		st, err := w.BeginStep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.PutValue(st, n), st.End(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	_ = w // abandoned in mid-stream: the session goes as if the process died
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	p, d := <-piped, <-dumped
	if d.code != exitOK {
		t.Errorf("reader of the target: exit code %d, stderr %q", d.code, d.stderr)
	}
	// A closing session may still tell its readers that the stream ends.
	if p.code != exitOK && !strings.Contains(p.stderr, "source: ") {
		t.Errorf("pipe: exit code %d, stderr %q", p.code, p.stderr)
	}
}

// A stream has no statistics: ls -l computes them.
func TestLsComputesBounds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, out := bpfixture.Extract(t, "main-types"), filepath.Join(t.TempDir(), "s")
	piped := make(chan result, 1)
	go func() { piped <- run(ctx, "pipe", in, out) }()
	got := run(ctx, "ls", "-l", "--observe=false", "--timeout", "30s", out+".sst")
	<-piped
	for _, want := range []string{"a_double   {5} = 0.25 / 4.25", "a_int8     {5} = 0 / 4", "a_uint64   {5} = 0 / 4", "a_float    {5} = 0.5 / 4.5", "s_int32    scalar = 7", `s_string   scalar = "step 0"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no line %q in\n%s", want, got.stdout)
		}
	}
}

// A folder of the same name does not hide a stream that comes while ls waits.
func TestStreamBesideFolder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := run(ctx, "ls", "--timeout", "10ms", name); r.code != exitUsage || !strings.Contains(r.stderr, "not a BP5 file") {
		t.Errorf("no stream: %+v", r)
	}
	listed := make(chan result, 1)
	go func() { listed <- run(ctx, "ls", "--observe=false", "--timeout", "30s", name) }()
	if err := writeLarge(ctx, name, 2, 2); err != nil {
		t.Fatal(err)
	}
	if r := <-listed; r.code != exitOK || !strings.Contains(r.stdout, "big") {
		t.Errorf("%+v", r)
	}
}

// A stream that nobody writes any more: the time-out holds.
func TestNoStepInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := filepath.Join(t.TempDir(), "s")
	session, err := sst.NewSession(ctx, sst.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	dumped := make(chan result, 1)
	go func() { dumped <- run(ctx, "dump", "--timeout", "1s", name) }()
	if _, err := sst.Create(ctx, name, sst.WriterConfig{Session: session}); err != nil {
		t.Fatal(err)
	}
	if d := <-dumped; d.code != exitFailed || !strings.Contains(d.stderr, errNoStep.Error()) {
		t.Errorf("exit code %d, stderr %q", d.code, d.stderr)
	}
}

// Without a contact file, people carry the line that the writer prints to the
// reader.
func TestPipeByScreen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, out := bpfixture.Extract(t, "v2.10.2-attrs"), filepath.Join(t.TempDir(), "s")
	screen, printed := io.Pipe()
	piped := make(chan int, 1)
	var pipeErrs, dumpErrs, dumped bytes.Buffer
	go func() {
		defer printed.Close()
		piped <- Run(ctx, Env{Stdin: strings.NewReader(""), Stdout: printed, Stderr: &pipeErrs}, []string{"pipe", "-P", "RegistrationMethod=screen", in, out})
	}()
	code := Run(ctx, Env{Stdin: screen, Stdout: &dumped, Stderr: &dumpErrs}, []string{"dump", "--json", "-P", "RegistrationMethod=Screen", "--timeout", "30s", out})
	if p := <-piped; p != exitOK || code != exitOK {
		t.Errorf("pipe %d, %s; dump %d, %s", p, pipeErrs.String(), code, dumpErrs.String())
	}
	if want := run(ctx, "dump", "--json", in); dumped.String() != want.stdout {
		t.Errorf("got\n%s\nwant\n%s", dumped.String(), want.stdout)
	}
	if _, err := os.Stat(out + contactSuffix); err == nil {
		t.Error("there is a contact file")
	}
}

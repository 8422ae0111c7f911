package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

// bareSides opens both sides of a bare stream in this process, each with a mapping of its own.
func bareSides(t *testing.T, a roleArgs, files []*os.File) (writer, reader *bareSteps) {
	t.Helper()
	fd := sys.NewFD(int(files[2].Fd()), "memory")
	defer fd.Disown()
	open := func(own bool) *bareSteps {
		b, err := openBare(a, fd, sys.Counter(files[1].Fd()), sys.Counter(files[0].Fd()), own)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.close(); err != nil {
				t.Error(err)
			}
		})
		return b
	}
	return open(a.access != inPlace), open(a.access == copying)
}

// bareMemoryFor makes what both sides share.
func bareMemoryFor(t *testing.T, a roleArgs) []*os.File {
	t.Helper()
	files, err := a.bareFiles()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFiles(files) })
	return files
}

// All steps come, in all accesses, whatever the queue and the size are.
func TestBareSteps(t *testing.T) {
	for _, access := range []access{copying, viewing, inPlace} {
		for _, queue := range []int{1, 2, 5} {
			for _, size := range []int{8, 8 * 1001, 1 << 20} {
				t.Run(fmt.Sprintf("%s, queue %d, %s", access, queue, sizeString(size)), func(t *testing.T) {
					a := roleArgs{bytes: size, vars: 1, queue: queue, seconds: 0.02, access: access}
					w, r := bareRun(t, a)
					for w.Steps == 0 && a.seconds < 10 { // a step can take as long on a busy machine
						a.seconds *= 4
						w, r = bareRun(t, a)
					}
					if r.Bad != 0 || r.Steps != w.Steps || r.Seconds <= 0 || r.Memory < 1<<20 || r.Viewed != (access != copying) {
						t.Errorf("wrote %+v, read %+v", w, r)
					}
				})
			}
		}
	}
}

// bareRun has both sides run in this process.
func bareRun(t *testing.T, a roleArgs) (wrote, read said) {
	t.Helper()
	writer, reader := bareSides(t, a, bareMemoryFor(t, a))
	done := make(chan said, 1)
	go func() {
		s, err := reader.read(t.Context(), a)
		if err != nil {
			t.Error(err)
		}
		done <- s
	}()
	wrote, err := writer.write(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return wrote, <-done
}

// No more steps are out than the queue allows, and the place that came back last is used first.
func TestBarePlaces(t *testing.T) {
	a := roleArgs{bytes: 64, vars: 1, queue: 3, access: inPlace}
	b, _ := bareSides(t, a, bareMemoryFor(t, a))
	seen := make(map[*int64]bool)
	for n := range uint64(4) {
		b.fill(n)
		seen[&b.step(n)[0]] = true
	}
	if len(seen) != 4 || len(b.free) != 0 {
		t.Errorf("%d places for 4 steps, %d are free", len(seen), len(b.free))
	}
	if err := b.taken.raise(2); err != nil {
		t.Fatal(err)
	}
	last := &b.step(1)[0]
	b.fill(4)
	if &b.step(4)[0] != last || len(b.free) != 1 {
		t.Error("not the place of the step that came back last")
	}
}

// A byte that is wrong is noticed.
func TestBareWrong(t *testing.T) {
	for _, access := range []access{copying, viewing, inPlace} {
		a := roleArgs{bytes: 800, vars: 1, queue: 1, access: access}
		writer, reader := bareSides(t, a, bareMemoryFor(t, a))
		writer.fill(0)
		if !reader.right(0) {
			t.Errorf("%s: what is right is refused", access)
		}
		writer.step(0)[99]++
		if reader.right(0) {
			t.Errorf("%s: what is wrong is taken", access)
		}
	}
}

// The rows, by real processes.
func TestStepsOfBare(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{config: config{rounds: 2, seconds: 0.1, log: io.Discard, self: []string{self}}, dir: t.TempDir()}
	rep := &stepsReport{Machine: describeMachine()}
	jobs := stepsPlan(regexp.MustCompile("^(8 B|8 MiB), .*bare"), false)
	if len(jobs) != 12 {
		t.Fatalf("%d jobs", len(jobs))
	}
	if err := r.measureSteps(t.Context(), rep, jobs); err != nil {
		t.Fatal(err)
	}
	for _, l := range rep.Lines {
		for _, s := range l.Samples { // on a busy machine there may be none
			if s.Steps < 1 || s.WriterStep < 1 || s.WriterCPU <= 0 || s.ReaderCPU <= 0 || s.WriterMem < 1<<20 || l.viewed() != (l.Way.Access != copying) {
				t.Errorf("%v, %v: %+v", l.Row, l.Way, s)
			}
		}
	}
}

// Each side ends with whoever started it, asleep or not.
func TestBareStepsEnd(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{config: config{self: []string{self}}}
	for _, role := range []string{"writer", "reader"} {
		a := roleArgs{role: role, bytes: 8, vars: 1, queue: 1, seconds: 60, plane: nothing, access: inPlace, blocks: 1, local: 1}
		files := bareMemoryFor(t, a)
		commands, err := r.commands(t.Context(), bareMemory, 1, a)
		if err != nil {
			t.Fatal(err)
		}
		cmd := commands[0]
		cmd.ExtraFiles = files
		p, err := start(role, cmd)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := bareSides(t, a, files)
		if role == "writer" {
			b.taken.asleep()
		} else {
			b.written.asleep()
		}
		if err := p.stdin.Close(); err != nil {
			t.Error(err)
		}
		<-p.done
		if exit, ok := errors.AsType[*exec.ExitError](p.err); !ok || exit.ExitCode() != 1 {
			t.Errorf("%s: %v\n%s", role, p.err, p.errs.String())
		}
	}
}

// Without the memory there is nothing to do.
func TestBareNoMemory(t *testing.T) {
	a := roleArgs{bytes: 8, vars: 1, queue: 1}
	closed := sys.NewFD(-1, "nothing")
	if _, err := openBare(a, closed, 0, 0, true); err == nil {
		t.Error("mapped nothing")
	}
}

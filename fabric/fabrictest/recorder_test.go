package fabrictest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// recorder stands in for a test that is to fail. Its methods may be called from any goroutine, but those that end
// the test only from the one that runs it.
type recorder struct {
	testing.TB // for what is not overridden, and for the method that nobody else can have
	mu         sync.Mutex
	failed     bool
	skipped    bool
	log        []string
	cleanups   []func()
	ctx        context.Context
}

// record runs do as a test of its own and returns how it went.
func record(t *testing.T, do func(t testing.TB)) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{TB: t, ctx: ctx}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer r.tidy()
		defer cancel()
		defer r.caught()
		do(r)
	}()
	<-over
	return r
}

func (r *recorder) caught() {
	if p := recover(); p != nil {
		r.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

func (r *recorder) tidy() {
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		func() {
			defer r.caught()
			last()
		}()
	}
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.log = append(r.log, text)
}

func (r *recorder) Helper()                   {}
func (r *recorder) Context() context.Context  { return r.ctx }
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)           { r.note(false, fmt.Sprint(args...)) }
func (r *recorder) Logf(f string, a ...any)   { r.note(false, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(args ...any)         { r.note(true, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.note(true, fmt.Sprintf(f, a...)) }
func (r *recorder) Fail()                     { r.note(true, "Fail") }

func (r *recorder) FailNow() {
	r.note(true, "FailNow")
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.note(true, fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(f string, a ...any) {
	r.note(true, fmt.Sprintf(f, a...))
	runtime.Goexit()
}

func (r *recorder) Skipf(f string, a ...any) {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	r.note(false, fmt.Sprintf(f, a...))
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// said is all that the test has said.
func (r *recorder) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func TestRecorder(t *testing.T) {
	var order []int
	r := record(t, func(t testing.TB) {
		t.Cleanup(func() { order = append(order, 2) })
		t.Cleanup(func() { order = append(order, 1) })
		t.Errorf("one %d", 1)
		t.Fatalf("two")
		t.Error("three")
	})
	if !r.failed || r.skipped || r.said() != "one 1\ntwo" || fmt.Sprint(order) != "[1 2]" {
		t.Errorf("failed %v, skipped %v, said %q, cleanups %v", r.failed, r.skipped, r.said(), order)
	}
	if r := record(t, func(t testing.TB) { t.Skipf("no") }); r.failed || !r.skipped {
		t.Error("a skip is a failure")
	}
	if r := record(t, func(testing.TB) { panic("oh") }); !r.failed {
		t.Error("a panic is no failure")
	}
}

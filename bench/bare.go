package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
	"github.com/weft-fabric/weft/internal/sys"
)

// bareEventfd is what rows are compared with in which the receiver sleeps: two processes like ours, each of which blocks in a
// read of a counter of the kernel that the other one adds to. So a thread of its own sleeps, that no netpoller
// wakes, and nothing is carried but that something came.
const bareEventfd software = "bare eventfd"

// The first arguments of its processes, which take the same words as ours.
const (
	bareWord     = "bare"
	barePeerWord = "bare-peer"
)

// The numbers that a process finds its counters at: the first of exec.Cmd's ExtraFiles, in the order of newCounters.
const (
	toPeer sys.Counter = 3 + iota
	fromPeer
)

// newCounters makes both, for the processes that are started.
func newCounters() (files []*os.File, err error) {
	for range 2 {
		f, err := sys.NewCounter()
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// bare is one side of a bare ping-pong.
type bare struct {
	own, other sys.Counter // what it waits for, and what it wakes by
}

// wait waits for the other side, or until bareMain's ctx ends.
func (b bare) wait(ctx context.Context) (uint64, error) {
	n, err := b.own.Wait()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return n, err
}

// measure does round trips, each after a pause, and says half the median of those that count. At last it asks for the
// processor time of the other side.
func (b bare) measure(ctx context.Context, w shmWork) (shmSample, error) {
	runtime.GC() // as ours
	cpu := sys.ProcessorTime()
	var list []float64
	for i := range w.warm() + w.Iters {
		if err := ping.Pause(ctx, w.Row.Pause); err != nil {
			return shmSample{}, err
		}
		begun := time.Now()
		err := b.other.Add(1)
		if err == nil {
			_, err = b.wait(ctx)
		}
		if err != nil {
			return shmSample{}, err
		}
		if i >= w.warm() {
			list = append(list, float64(time.Since(begun).Nanoseconds())/2e3)
		}
	}
	cpu = sys.ProcessorTime() - cpu
	if err := b.other.Add(1); err != nil {
		return shmSample{}, err
	}
	peer, err := b.wait(ctx)
	us := 1e6 / float64(2*w.Iters)
	return shmSample{Value: summarize(list).Median, Local: cpu.Seconds() * us, Peer: time.Duration(peer).Seconds() * us}, err
}

// serve answers, and then tells its processor time.
func (b bare) serve(ctx context.Context, w shmWork) error {
	cpu := sys.ProcessorTime()
	for range w.warm() + w.Iters {
		if _, err := b.wait(ctx); err != nil {
			return err
		}
		if err := b.other.Add(1); err != nil {
			return err
		}
	}
	cpu = sys.ProcessorTime() - cpu
	if _, err := b.wait(ctx); err != nil {
		return err
	}
	return b.other.Add(uint64(max(cpu, 1)))
}

// bareMain is the main of such a process.
func bareMain(ctx context.Context, word string, w shmWork) error {
	b := bare{own: fromPeer, other: toPeer}
	if word == barePeerWord {
		b = bare{own: toPeer, other: fromPeer}
	}
	stop := context.AfterFunc(ctx, func() { _ = b.own.Add(1) }) // where nobody waits it may fail
	defer stop()
	if word == barePeerWord {
		if _, err := fmt.Println("here"); err != nil { // where ours says its address
			return err
		}
		return b.serve(ctx, w)
	}
	s, err := b.measure(ctx, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

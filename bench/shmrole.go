package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/ping"
	"github.com/weft-fabric/weft/internal/sys"
	_ "github.com/weft-fabric/weft/prov/shm"
)

// The first arguments of processes of the table of shared memory. Two words of JSON follow, a
// shmWork and an address.
const (
	pingWord     = "ping"      // measures
	pingPeerWord = "ping-peer" // serves, and says its address first
	pauseWord    = "pause"     // measures what waiting does to the garbage collector
)

// shmWork is what such a process is told.
type shmWork struct {
	Row   shmRow `json:"row"`
	Iters int    `json:"iters"`
}

func (w *shmWork) config() ping.Config {
	c := ping.Config{Provider: "shm", Wait: w.Row.Wait}
	if w.Row.Manual {
		c.Progress = fabric.Manual
	}
	return c
}

// warm is how often a bare operation is done before those that count: about as often as one of ours.
func (w *shmWork) warm() int { return w.Iters/10 + 1 }

func (w *shmWork) work() ping.Work {
	p := ping.Work{Op: w.Row.Op, Sizes: []int{w.Row.Size}, Iters: w.Iters, Only: ping.Rate, Pause: w.Row.Pause}
	if w.Row.Metric == latency || w.Row.Single {
		p.Only = ping.Latency
	}
	return p
}

// shmMain is the main of such a process.
func shmMain(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%w: %q", errArgs, args)
	}
	var w shmWork
	if err := json.Unmarshal([]byte(args[1]), &w); err != nil {
		return fmt.Errorf("%w: %w", errArgs, err)
	}
	out := json.NewEncoder(os.Stdout)
	switch args[0] {
	case bareWord, barePeerWord:
		return bareMain(ctx, args[0], w)
	case pingPeerWord:
		return ping.Serve(ctx, w.config(), func(a fabric.Address) error {
			_, err := fmt.Println(a)
			return err
		})
	case pauseWord:
		s, err := measurePause(ctx, w)
		if err != nil {
			return err
		}
		return out.Encode(s)
	}
	return ping.Measure(ctx, w.config(), w.work(), fabric.Address(args[2]), func(r ping.Result) error { return out.Encode(w.sample(r)) })
}

// sample is a result in the units of the row.
func (w *shmWork) sample(r ping.Result) shmSample {
	s := shmSample{Value: r.Latency.Median}
	ops := float64(w.Iters)
	switch w.Row.Metric {
	case rate:
		s.Value = r.OpsPerS / 1e6
	case bandwidth:
		s.Value = r.MBPerS / 1e3
	case latency:
		if w.Row.peered() { // fi_pingpong says a mean
			s.Value = 1e6 / r.OpsPerS
		}
	case pauseMax, pauseP99:
	}
	if w.work().Only == ping.Latency {
		ops *= 2
	}
	s.Local, s.Peer = r.CPU.Local*1e6/ops, r.CPU.Peer*1e6/ops
	return s
}

// measurePause collects garbage beside a goroutine that waits for messages which never come, and gives
// the pauses in which the world stood still, the stopping of it included.
func measurePause(ctx context.Context, w shmWork) (shmSample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	if w.Row.Idle {
		ended <- nil
	} else {
		listening := make(chan struct{})
		go func() {
			err := ping.Serve(ctx, w.config(), func(fabric.Address) error { close(listening); return nil })
			ended <- err
			cancel(err)
		}()
		select {
		case <-listening:
		case <-ctx.Done():
			return shmSample{}, context.Cause(ctx)
		}
	}
	before := sys.ProcessorTime()
	start := time.Now()
	list, err := collectGarbage(ctx, w.Iters)
	if err != nil {
		return shmSample{}, err
	}
	slices.Sort(list)
	at := len(list) - 1
	if w.Row.Metric == pauseP99 {
		at = at * 99 / 100
	}
	s := shmSample{Value: float64(list[at].Nanoseconds()) / 1e3, Local: (sys.ProcessorTime() - before).Seconds() / time.Since(start).Seconds()}
	cancel(errStopped)
	if err := <-ended; err != nil && !errors.Is(err, errStopped) {
		return shmSample{}, err
	}
	return s, nil
}

var errStopped = errors.New("bench: stopped")

// node makes a heap that takes the collector some time.
type node struct {
	sibling *node
	data    [6]uint64
}

// collectGarbage makes garbage and collects it so many times, and returns the pauses.
func collectGarbage(ctx context.Context, times int) (list []time.Duration, err error) {
	heap := make([]*node, 300_000)
	var m runtime.MemStats
	for k := range times {
		for i := k % 2; i < len(heap); i += 2 {
			heap[i] = &node{data: [6]uint64{uint64(i)}}
			if i%2 == 1 {
				heap[i].sibling = heap[i-1] // which has none: no chain grows
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&m)
		list = append(list, time.Duration(m.PauseNs[(m.NumGC+255)%256]))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	runtime.KeepAlive(heap)
	return list, nil
}

// isShmWord reports whether a first argument is one of these processes'.
func isShmWord(s string) bool {
	return slices.Contains([]string{pingWord, pingPeerWord, pauseWord, bareWord, barePeerWord}, s)
}

// Simulate is a small simulation, waves on a square pond, that computes each
// step in memory which its readers look at:
//
//	go run ./examples/simulate -stream pond
//
// It waits for a reader, such as examples/look or examples/train: "go run
// ./examples/look pond u" in another terminal. It prints by which data plane
// its readers have the steps: native, if they look at its memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/weft-fabric/weft/prov/shm" // readers of this node look at our memory
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// keep is how many steps readers may have before the simulation waits for them.
const keep = 4

// simulate writes one step of the stream for each step in time.
func simulate(ctx context.Context, w *sst.Writer, size, steps int, out io.Writer) error {
	u, err := sst.Define[float64](w, "u", step.GlobalArray(uint64(size), uint64(size)))
	if err != nil {
		return err
	}
	p := newPond(size)
	told := ""
	for range steps {
		st, err := w.BeginStep(ctx)
		if err != nil {
			return err
		}
		next, err := u.Span(st, step.All)
		if err != nil {
			return err
		}
		p.advance(next)
		if err := st.End(ctx); err != nil {
			return err
		}
		if now := readers(w); now != told {
			fmt.Fprintf(out, "step %d: %s\n", st.Number(), now)
			told = now
		}
	}
	return w.Finish(ctx)
}

// readers tells by which data plane each reader has the steps.
func readers(w *sst.Writer) string {
	var planes []string
	for _, r := range w.Info().Readers {
		if r.Active {
			planes = append(planes, r.Plane)
		}
	}
	if planes == nil {
		return "no readers"
	}
	return "readers: " + strings.Join(planes, ", ")
}

// courant is (speed of the waves * time step / distance of two points) squared;
// above 0.5 the computation would blow up.
const courant = 0.25

// pond is a square of n*n points. Its edge is at rest, at 0.
type pond struct {
	n           int
	now, before []float64 // heights, row after row
}

// newPond returns a pond with a bump in its middle, at rest.
func newPond(n int) *pond {
	p := &pond{n: n, now: make([]float64, n*n), before: make([]float64, n*n)}
	middle, width := float64(n-1)/2, float64(n)/16
	for i := 1; i < n-1; i++ {
		for j := 1; j < n-1; j++ {
			r := math.Hypot(float64(i)-middle, float64(j)-middle) / width
			p.now[i*n+j] = math.Exp(-r * r / 2)
		}
	}
	copy(p.before, p.now)
	return p
}

// advance computes the next state into next, all of it: what the memory of a
// step holds at first is undefined. The step will not be ours to read any more,
// so what the state after this one needs is kept beside, in place of the oldest.
func (p *pond) advance(next []float64) {
	n, now := p.n, p.now
	clear(next[:n])
	clear(next[n*(n-1):])
	for row := n; row < n*(n-1); row += n {
		next[row], next[row+n-1] = 0, 0
		for i := row + 1; i < row+n-1; i++ {
			u := 2*now[i] - p.before[i] + courant*(now[i-n]+now[i-1]+now[i+1]+now[i+n]-4*now[i])
			next[i], p.before[i] = u, u
		}
	}
	p.now, p.before = p.before, p.now
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("simulate", flag.ExitOnError)
	stream := flags.String("stream", "pond", "name of the stream")
	size := flags.Int("size", 512, "points of a side of the pond")
	steps := flags.Int("steps", 500, "steps to compute")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *size < 3 || *steps < 0 || flags.NArg() > 0 {
		return fmt.Errorf("a pond has 3 points a side or more, and there is nothing but flags: %q", args)
	}
	w, err := sst.Create(ctx, *stream, sst.WriterConfig{Params: sst.Params{QueueLimit: keep}})
	if err != nil {
		return err
	}
	if err := simulate(ctx, w, *size, *steps, out); err != nil {
		w.Abort(err) // readers are told that there was to be more
		return err
	}
	return w.Close()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Look attaches to a running simulation and prints minimum, mean and maximum of
// a variable in each step, of the simulation's own memory where that can be
// looked at:
//
//	go run ./examples/look STREAM VARIABLE
//
// Ctrl-C ends it; the simulation goes on. "go run ./examples/simulate" is one,
// with the stream pond and the variable u.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/weft-fabric/weft/prov/shm" // we look at the memory of writers of this node
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// looker looks at one variable of a stream.
type looker struct {
	variable string
	out      io.Writer
	told     bool // why there are no views
}

// look prints a line for each step.
func (l *looker) look(ctx context.Context, s *sst.Session, stream string) error {
	r, err := sst.Open(ctx, stream, sst.ReaderConfig{Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		values, release, err := l.values(ctx, st)
		if err != nil {
			return err
		}
		low, mean, high := summary(values)
		release()
		fmt.Fprintf(l.out, "step %d: min %.4g, mean %.4g, max %.4g (%s)\n", st.Number(), low, mean, high, r.Info().Plane)
	}
	return nil
}

// values returns the variable's elements, to be looked at until release: the
// writer's memory, or a copy where it is not in one piece.
func (l *looker) values(ctx context.Context, st *step.Step) (values []float64, release func(), err error) {
	v, err := step.Lookup[float64](st, l.variable)
	if err != nil {
		return nil, nil, err
	}
	view, err := v.View(ctx, step.All)
	if !errors.Is(err, step.ErrNoView) {
		return view.Data(), view.Release, err
	}
	if !l.told {
		fmt.Fprintf(l.out, "copied, not looked at: %v\n", err)
		l.told = true
	}
	values, err = v.Get(ctx, step.All, nil)
	return values, func() {}, err
}

func summary(values []float64) (low, mean, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, mean, high = min(low, v), mean+v, max(high, v)
	}
	return low, mean / float64(len(values)), high
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: look STREAM VARIABLE")
	}
	s, err := sst.NewSession(ctx, sst.SessionConfig{})
	if err != nil {
		return err
	}
	l := looker{variable: args[1], out: out}
	err = l.look(ctx, s, args[0])
	if ctx.Err() != nil {
		err = nil // Ctrl-C is how one stops looking
	}
	return errors.Join(err, s.Close()) // in order: a writer that is left in the middle of our opening would hang
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

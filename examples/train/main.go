// Train fits a linear model to a running simulation, by stochastic gradient
// descent on samples that stay where they are, in the simulation's memory:
//
//	go run ./examples/train STREAM VARIABLE
//
// The variable is a field of two dimensions, and each of its inner points in
// three successive steps is a sample: from the value u there, and from D, the
// sum of what its four neighbours have more, the model tells the acceleration.
// That of "go run ./examples/simulate" (stream pond, variable u) is 0.25 D,
// which is what the model finds out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"

	_ "github.com/weft-fabric/weft/prov/shm" // we look at the memory of writers of this node
	"github.com/weft-fabric/weft/sst"
)

// trainer fits a model to a stream.
type trainer struct {
	variable string
	epochs   int // over the same steps
	out      io.Writer
	model    model
	random   *rand.Rand
}

// train learns from each three steps. They are retained meanwhile, and the
// simulation computes the next one.
func (t *trainer) train(ctx context.Context, s *sst.Session, stream string) (err error) {
	r, err := sst.Open(ctx, stream, sst.ReaderConfig{Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := checkQueue(r.WriterParams()); err != nil {
		return err
	}
	var w window
	defer func() { err = errors.Join(err, w.end(len(w))) }()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		if err := w.add(ctx, r, st, t.variable); err != nil {
			return err
		}
		if len(w) < span {
			continue
		}
		first, last := t.learn(w.samples())
		fmt.Fprintf(t.out, "step %d: loss %.2g to %.2g, acceleration %.3g u + %.3g D (%s)\n",
			st.Number(), first, last, t.model[0], t.model[1], r.Info().Plane)
		if err := w.end(1); err != nil {
			return err
		}
	}
	return nil
}

// learn goes through the samples for some epochs, in another order each time,
// and returns the loss of the first and of the last one: the mean of the
// squared errors.
func (t *trainer) learn(s samples) (first, last float64) {
	points := s.points()
	for epoch := range t.epochs {
		t.random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		last = 0
		for batch := range slices.Chunk(points, batchSize) {
			last += t.model.descend(s, batch) / float64(len(points))
		}
		if epoch == 0 {
			first = last
		}
	}
	return first, last
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("train", flag.ExitOnError)
	epochs := flags.Int("epochs", 3, "how often to learn from the same steps")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 || *epochs < 1 {
		return errors.New("usage: train [-epochs N] STREAM VARIABLE")
	}
	s, err := sst.NewSession(ctx, sst.SessionConfig{})
	if err != nil {
		return err
	}
	t := trainer{
		variable: flags.Arg(1), epochs: *epochs, out: out,
		random: rand.New(rand.NewPCG(1, 2)), // the same in every run
	}
	return errors.Join(t.train(ctx, s, flags.Arg(0)), s.Close())
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

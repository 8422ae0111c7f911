// Mean attaches to a running simulation and prints the mean of a variable in
// each step:
//
//	go run ./examples/mean STREAM VARIABLE
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// mean is the whole analysis.
func mean(ctx context.Context, s *sst.Session, stream, variable string) error {
	r, err := sst.Open(ctx, stream, sst.ReaderConfig{Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		values, err := step.Read[float64](ctx, st, variable)
		if err != nil {
			return err
		}
		fmt.Printf("step %d: mean %g\n", st.Number(), sum(values)/float64(len(values)))
	}
	return nil
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: mean STREAM VARIABLE")
	}
	// Whatever ends this program, the session is closed in order: an ADIOS2 writer
	// that is left in the middle of our opening would hang or crash.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s, err := sst.NewSession(ctx, sst.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(mean(ctx, s, os.Args[1], os.Args[2]), s.Close()); err != nil {
		log.Fatal(err)
	}
}

// Mean attaches to a running simulation and prints the mean of a variable in
// each step:
//
//	go run ./examples/mean STREAM VARIABLE
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

func mean(ctx context.Context, stream, variable string) error {
	r, err := sst.Open(ctx, stream, sst.ReaderConfig{})
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
	if err := mean(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

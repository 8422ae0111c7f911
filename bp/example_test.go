package bp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/step"
)

// Reading all steps of a dataset, one after the other.
func Example() {
	ctx := context.Background()
	r, err := bp.Open(ctx, "heat.bp", bp.Config{})
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("there is no heat.bp")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			log.Fatal(err) // the steps in front were whole
		}
		t, err := step.Lookup[float64](st, "T")
		if err != nil {
			log.Fatal(err)
		}
		row, err := t.Get(ctx, step.Box{Start: []uint64{0, 0}, Count: []uint64{1, 8}}, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(st.Number(), row)
	}
	// Output: there is no heat.bp
}

// Following a dataset whose writer is at work, or has not even begun.
func ExampleConfig_follow() {
	r, err := bp.Open(context.Background(), "running.bp", bp.Config{
		Follow:  true,
		Timeout: 10 * time.Millisecond, // for the dataset to appear, and for each step
		Notify:  func(n bp.Notice) { log.Print(n) },
	})
	if err != nil {
		fmt.Println("not here in time:", errors.Is(err, os.ErrNotExist))
		return
	}
	defer r.Close()
	// Output: not here in time: true
}

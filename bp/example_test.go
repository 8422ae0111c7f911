package bp_test

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/step"
)

// Read a variable in every step of a file, also while it is being written.
func ExampleReader_Steps() {
	ctx := context.Background()
	r, err := bp.Open(ctx, "run.bp", bp.Config{Follow: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		T, err := step.Lookup[float64](st, "T")
		if err != nil {
			continue // not in this step
		}
		a, err := T.Get(ctx, step.All, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(st.Number(), len(a))
	}
}

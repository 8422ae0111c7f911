package main

import (
	"context"
	"fmt"
	"runtime"
)

// rounds is what a table measures, round by round.
type rounds[J fmt.Stringer] struct {
	jobs []J // of a round, in order: so they all see the same neighbours on the machine
	// do does job i, keeps what came of it, and returns that in words.
	do func(ctx context.Context, round, i int) (string, error)
	// forgive notes that job i failed, and says whether the run goes on; nil: it never does.
	forgive func(i int, err error) bool
}

// run does all rounds that c asks for, and returns how many processors were busy before each.
func (t rounds[J]) run(ctx context.Context, c config) (loads []float64, err error) {
	for round := range c.rounds {
		load, err := measureLoad(ctx, runtime.NumCPU())
		if err != nil {
			return loads, err
		}
		fmt.Fprintf(c.log, "round %d of %d%s\n", round+1, c.rounds, busyNote(load))
		loads = append(loads, load)
		for i, j := range t.jobs {
			text, err := t.do(ctx, round, i)
			switch {
			case ctx.Err() != nil:
				return loads, context.Cause(ctx)
			case err == nil:
			case t.forgive != nil && t.forgive(i, err):
				text = fmt.Sprintf("FAILED: %v", err)
			default:
				return loads, fmt.Errorf("round %d, %v: %w", round+1, j, err)
			}
			fmt.Fprintf(c.log, "  %-60v %s\n", j, text)
		}
	}
	return loads, nil
}

func busyNote(load float64) string {
	if load < busyLoad {
		return ""
	}
	return fmt.Sprintf(" (the machine was BUSY: %.2f processors)", load)
}

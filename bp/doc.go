// Package bp reads BP5 datasets, the folders "name.bp" that ADIOS2 writes.
//
//	r, err := bp.Open(ctx, "run.bp", bp.Config{})
//	defer r.Close()
//	for st, err := range r.Steps(ctx) { // one step after the other
//		...
//	}
//	st, err := r.Step(ctx, 7) // or any of r.NumSteps()
//
// What comes out is the same *step.Step that a live stream gives. A dataset
// whose writer is still at work can be followed, see Config.Follow: BP5 has no
// event for a new step, so this is one of the few places where Weft polls (the
// size of one file, every Config.Poll).
//
// A writer can ask that all steps are presented as one. Then the writers of
// later steps count as further ranks of that one step: their blocks lie over
// the earlier ones, arrays keep their first shape, and a local value has an
// element for each rank and step. Config.IgnoreFlatten shows the steps as they
// are.
//
// The package does not write files, and it does not read older BP versions or
// datasets in object storage; it says so when it meets them. The layout of the
// files is in docs/wire/bp5.md §6.
//
// Everything in the files is taken as hostile: no number in them makes the
// package allocate more than the files hold, and no content makes it panic.
//
// A [Reader] may be used by several goroutines at a time, and so may its steps.
package bp

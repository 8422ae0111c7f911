// Package sst streams steps of n-dimensional arrays between running programs
// by the protocol of ADIOS2's SST engine. Either side may be an unmodified
// ADIOS2 program.
//
// A writer creates a stream under a name; a small contact file of that name
// (NAME.sst) tells readers where it listens. Readers attach, get every step
// from then on, fetch what they want of it, and release it.
//
//	w, err := sst.Create(ctx, "sim", sst.WriterConfig{})
//	T, err := sst.Define[float64](w, "T", step.GlobalArray(nx, ny))
//	st, err := w.BeginStep(ctx)
//	buf, err := T.Span(st, step.Box{Count: []uint64{nx, ny}})  // memory to compute into
//	err = st.End(ctx)                                           // publishes
//	err = w.Close()                                             // until the readers have it all
//
//	r, err := sst.Open(ctx, "sim", sst.ReaderConfig{})
//	for st, err := range r.Steps(ctx) {
//		T, err := step.Lookup[float64](st, "T")
//		a, err := T.Get(ctx, step.All, nil)
//	}
//
// On one node a reader looks at the memory of a Weft writer instead of getting
// copies, if both programs link the provider for it and are of one user. Without
// the import, and without a word, data goes through sockets; Info says which it is.
//
//	import _ "github.com/weft-fabric/weft/prov/shm"
//
//	v, err := T.View(ctx, step.All)                             // the writer's memory, read-only
//	defer v.Release()
//
// A program of several processes opens the stream on each of them, with a
// [github.com/weft-fabric/weft/sst/cohort.Cohort] that connects them: see [WriterConfig] and [ReaderConfig].
//
//	ranks, err := cohort.FromEnv(ctx, cohort.LauncherConfig{})
//	defer ranks.Close()                                         // last
//	w, err := sst.Create(ctx, "sim", sst.WriterConfig{Cohort: ranks})
//
// A process that exits without closing stream and cohort (os.Exit, log.Fatal)
// counts as dead: the other ranks, and the readers, get an error. What it was
// about to tell them, such as why an Open failed, may be lost.
//
// Several streams of a process can share a [Session]: its listener and its
// connections. Sessions are independent of each other, and nothing is global.
//
// Attaching to a real ADIOS2 writer is not free for it: the reader counts for
// its RendezvousReaderCount, takes its turn in round-robin, and under a queue
// limit the writer waits for it.
//
// Writer, Reader and Session are safe for concurrent use, but the steps of one
// stream are taken, and made, one after the other.
package sst

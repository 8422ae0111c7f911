// Package cohort connects the ranks of one side of a stream: the writer ranks,
// or the reader ranks. It does what a communicator does in MPI, as far as a
// stream needs it, without MPI.
//
//   - [Solo] is a cohort of one rank.
//   - [Local] makes n ranks of one process, for goroutines that work side by side.
//   - [TCP] connects n processes: rank 0 listens, the others dial it. Whoever
//     joins proves by a shared token that it belongs to the job.
//   - [FromLauncher] finds rank and size of a process that mpirun, srun or
//     another launcher has started, and how to reach rank 0. [Detect] only looks.
//
// What it is not: a message-passing library. Only rank 0 and one other rank talk
// to each other; gathering and spreading are linear in the number of ranks and
// stream through rank 0. Nor is it a secret channel: the token decides who may
// join, what follows travels as it is.
//
// Concurrency: everything is safe for concurrent use; handlers are called one
// at a time for each channel, on goroutines that live while there is something
// to tell. A connection has two goroutines more, one that reads and one that
// writes. Nothing polls, but for the file of [FromLauncher]: file systems that
// several hosts share offer no event.
package cohort

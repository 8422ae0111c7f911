// Package cp is the control plane of one rank: two state machines, one for
// each side of a stream.
//
// Both are pure. An event goes in (a message, a lost link, a call of the
// application), actions come out (send this, wake that), and nothing else
// happens: no clock, no I/O, no goroutine. The shell in package sst feeds them
// and carries the actions out in order. That makes every history repeatable in
// a test, and keeps the rules of the protocol in one place:
//
//   - a reader that has sent ReaderRegister never leaves before it has answered
//     WriterResponse with ReaderActivate and said ReaderClose, because real
//     writers hang or crash otherwise (docs/wire/sst.md §9.3);
//   - a step is released once, after its last use, in rising order, and never if
//     the writer discarded it (§6.2);
//   - a writer holds a step for each reader from its registration on, until the
//     reader releases it, leaves, or is lost, at any point of its opening.
//
// A machine belongs to one goroutine at a time.
package cp

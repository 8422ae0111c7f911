// Package cp is the control plane of a stream: state machines for both sides,
// each side a cohort of members with one leader, and the messages between them.
//
// A leader speaks with rank 0 of the other side and decides for all; a member
// stands for the application of one process. Member 0 is in the leader's process.
// What leaders and members tell each other is in message.go, its encoding in
// codec.go.
//
// All machines are pure. An event goes in (a message, a lost link, a call of the
// application), actions come out (send this, wake that), and nothing else
// happens: no clock, no I/O, no goroutine. The shell in package sst feeds them
// and carries the actions out in order. That makes every history repeatable in
// a test, and keeps the rules of the protocol in one place:
//
//   - a reader that has sent ReaderRegister never leaves before it has answered
//     WriterResponse with ReaderActivate and said ReaderClose, because real
//     writers hang or crash otherwise (docs/wire/sst.md §9.3);
//   - a reader of the native plane says which plane that turns out to be before it
//     activates, and only who has such a plane is told where steps lie (docs/native.md);
//   - a step is released once, after its last use by any member, to ADIOS2 in
//     rising order, and never if the writer discarded it (§6.2);
//   - a writer holds a step for each reader from its registration on, until the
//     reader releases it, leaves, or is lost, at any point of its opening;
//   - all members of a side see the same steps in the same order, and the death of
//     one becomes an error for the others, not a wait.
//
// A machine belongs to one goroutine at a time.
package cp

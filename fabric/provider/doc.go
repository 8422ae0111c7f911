// Package provider is the lowest public package of Weft's communication half:
// the words that programs and providers share, the interfaces a provider
// implements, and the list of providers that are linked into the program.
//
// The words are libfabric's. A [Provider] describes what it can do here
// ([Info], pure data) and opens a [Domain]; a domain has completion queues,
// counters, an address vector, memory, and endpoints; an endpoint sends
// messages, tagged messages, and reads and writes a peer's memory. Programs use
// package fabric, which wraps these interfaces in concrete types and checks
// arguments once for all; authors of providers implement them here and prove it
// with package fabric/fabrictest.
//
// # Rules that bind every provider
//
//   - Every method is safe for concurrent use.
//   - Operations complete exactly once: with success, with an error, or cancelled,
//     also when the endpoint closes or the peer dies.
//   - Between one sending and one receiving endpoint, messages and tagged
//     messages match receives in the order in which they were posted. RMA and
//     atomics towards one peer start in the order of posting; they are not
//     ordered against messages, except that an operation with [RemoteData] or a
//     message posted after it is seen by the peer after the data it follows.
//   - [ErrAgain] means back-pressure of our own side that progress will end; a
//     completion queue's waiters are woken when it has. It never means that a
//     peer is dead.
//   - A buffer of an operation belongs to the provider from the post until its
//     completion is read, but for [Inject], which gives it back at return.
//   - Errors say things in one order, which stands at the errors.
//   - Close is idempotent, returns in bounded time whatever a peer does, and has
//     joined every goroutine the provider started.
package provider

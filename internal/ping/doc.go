// Package ping measures what operations of package fabric cost between two
// endpoints: the work behind the command weft ping, and behind the tables of bench.
//
// One side, [Measure], knows what is to be measured and tells the other one,
// [Serve], by control messages, which are tagged messages of the same endpoint. For each
// size there are two phases, one for latency and one for rates. All data have a
// pattern: the first and the last bytes are checked on each operation whose end the side is told that
// gets them, all of them at the end, so that a provider that is fast because it is wrong is noticed.
//
// It is not a test of a provider; that is fabric/fabrictest. It starts no process:
// the caller does.
//
// The functions keep no state and are safe for concurrent use, but for what
// [PinProcess] does to the whole process.
package ping

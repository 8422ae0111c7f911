// Package dp holds the data planes of a reader rank: how it gets bytes of a
// writer rank's data block. Evpath asks for them in messages on sockets
// (docs/wire/sst.md §8), or takes what the writer pushed. Native looks at the memory of
// writers to which there is a route (docs/native.md), and asks the others.
//
// A plane is safe for concurrent use. Nothing runs while nobody reads: replies are
// brought by whoever reads the connections. A read has goroutines of its own for large
// copies, and for what it asks for while it copies, and has joined them when it
// returns.
package dp

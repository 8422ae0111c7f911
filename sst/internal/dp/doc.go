// Package dp holds the data planes of a reader rank: how it gets bytes of a
// writer rank's data block. Evpath asks for them in messages on sockets
// (docs/wire/sst.md §8), or takes what the writer pushed.
//
// A plane is safe for concurrent use. It starts no goroutine: replies are
// brought by whoever reads the connections.
package dp

// Package carrier moves SST's messages between two processes: over ordered
// channels with two ends, called links. The engine sends and gets encoded
// records (package ffs) and does not know what carries them. CM over TCP is the
// first carrier: it speaks EVPath's protocol (package cm, docs/wire/cm.md) with
// real ADIOS2 peers and with Weft alike. Fabric is the second, between Weft processes
// that reach each other through package fabric: it sends the same records as messages of
// an endpoint (docs/wire/link.md).
//
// What they do: listening and publishing a contact, dialling with reuse of open
// links, the handshakes, pushing formats before their first use, queueing,
// back-pressure, limits, closing in bounded time.
//
// What they are not: they know no SST message, and they repeat nothing. A link that
// loses a message is lost as a whole.
//
// Concurrency: every method is safe for concurrent use. A link of CM has two
// goroutines, one that reads and calls the Handler, and one that writes; both
// sleep in the kernel while nothing moves, without a timer. All links of a Fabric share one. Callbacks run with
// no lock held: they may call any method of a Link, and Dial if they can wait,
// but not Close of the endpoint, which waits for them.
package carrier

// Package native is a session's share of fabric: what a reader needs to look at the memory of a writer process of its node.
//
// A [Fabric] is one domain and one endpoint of the provider shm, for all streams of a session. Its process is reached by a
// contact ([Fabric.Contact]), which a writer tells with its messages. A reader turns it into a [Peer] ([Fabric.Reach]), which is tried at once: a few
// bytes of the process, its probe, are mapped and compared. Then [Peer.View] hands out memory that the other side got from
// [Fabric.Alloc]: no copy, no message, no work of the other program.
//
// A process is a peer of itself like any other (docs/decisions/0011).
//
// What it is not: aware of streams, steps and stores. And it links no provider: the program does.
//
// Nothing runs while nothing happens: the domain's goroutines sleep in the kernel, and there is no timer. The endpoint is also what
// messages go by (package carrier), if somebody is there for them ([Fabric.Messages]).
//
// All methods are safe for concurrent use. None calls the program: the logger is called from a goroutine of its own, so
// locks may be held around every call. Those that have a context may wait, Alloc and Close may take long; the others return at once.
package native

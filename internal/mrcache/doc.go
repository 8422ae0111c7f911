// Package mrcache keeps memory registered between operations, for domains whose providers need local buffers registered. Its promise is that a
// registration which it hands out is of the memory that lies there now: it asks at each hit whoever can know (package memmon), and does not keep what nobody
// answers for. docs/registration.md says why, and how it is shown.
//
// It is not for memory that a program registers explicitly, and it copies nothing.
//
// A hit takes no lock and allocates nothing. Registering and deregistering, which may block, map and unmap, happen without any lock of the cache,
// and neither where memory events are told nor in cleanups of Go objects. One goroutine deregisters what has died; it sleeps on channels, and there is no
// timer. Everything is safe for concurrent use, but for a [Registration], which is for one goroutine at a time.
package mrcache

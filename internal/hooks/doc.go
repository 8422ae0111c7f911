// Package hooks finds out who has changed the functions of the C library that give memory back: registration caches of other libraries do, to
// hear of it, and the second one that does makes the first one deaf (docs/registration.md).
//
// Three ways are looked for. A function is patched when its first bytes in memory are not those in the file; interposed when an object that comes
// earlier in the order of the dynamic loader defines it as well, as one of LD_PRELOAD does; rerouted when the slot by which an object calls
// it holds another address. Objects in loader namespaces of their own (dlmopen) are not seen, nor is who filters system calls.
//
// It only reads, and changes nothing. What it reads, memory of a running process and files that may be anything, is taken as hostile. Its functions keep no
// state and are safe for concurrent use.
package hooks

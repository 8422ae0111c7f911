// Package sys is where Weft calls the kernel beyond what the standard library
// does: one of the two packages that may use unsafe, and the only one that
// imports golang.org/x/sys/unix. Its functions keep no state and are safe for
// concurrent use unless they say otherwise.
package sys

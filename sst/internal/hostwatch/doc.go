// Package hostwatch notices that the host at the other end of a TCP connection
// has vanished while it owes us acknowledgements.
//
// The kernel's keep-alive asks only on connections where nothing is under way.
// Where something is, it repeats that for a quarter of an hour or longer.
// TCP_USER_TIMEOUT would bound that, but it ends connections to processes that
// are stopped as well: their kernel answers, and it does not count
// (docs/decisions/0008). So a Watch looks at what the kernel knows: how often it
// has tried, and for how long nothing at all has come back.
//
// What it is not: a judge of processes. One that hangs on a host that answers is
// let hang.
//
// Concurrency: see [Watch].
package hostwatch

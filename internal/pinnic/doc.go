// Package pinnic is a network card for tests: it reads and writes memory by its pages, as a card does that the memory was
// registered with. Registering pins the pages (with io_uring's fixed buffers). What is sent is what lies in these pages, whatever the
// address means meanwhile; what is received goes there, and nobody is told when that is no longer where the program looks.
// So a registration that has gone stale shows, on any Linux machine, without RDMA hardware.
//
// It is a test double: archtest lets only tests and the benchmarks import it. It is no provider, has one wire to one far end, and is not fast.
//
// All methods are safe for concurrent use. It starts no goroutine.
package pinnic

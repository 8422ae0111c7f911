// Package memmon says what memory is, and who can tell when it goes away, so that nobody uses a registration of memory that has become other
// memory.
//
// Go cannot ask whether an address is Go heap, a mapping or C memory, so the kinds of memory are types ([Kind]): an [Arena], which this package
// maps itself; [HeapBytes]; and [Mapped] memory with an [Owner], or without one, for which the monitor of the process has to answer. One
// [Arbiter] serves the process ([Process]): it has at most one [Monitor] ([Arbiter.Choose], [Arbiter.Import]), hears what anybody tells
// ([Arbiter.Notify]; hooks in C by weft_memory_events.h, which lies in this folder), and makes a [Proof] for memory, which a cache asks at each use.
//
// It is not a cache, and it patches nothing. All methods of an Arbiter are safe for concurrent use; kinds are values that do not change.
package memmon

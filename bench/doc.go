// Command bench measures what a step costs, against the real ADIOS2 on the same
// machine in the same run, and prints a table: ours, theirs, ratio, spread. With
// -table shm it does the same for operations over shared memory, against libfabric.
//
//	go run ./bench [-table sockets|shm|steps|growth|registrations] [-rounds N] [-seconds S] [-only REGEXP] [-json] [-docs DIR] [-cpuprofile DIR]
//
// # Steps over sockets
//
// A row is a payload, in one variable or in many, a number of writer and reader
// ranks, and a queue limit. In each round every row runs all four
// paths, one after the other: Weft to Weft, Weft to ADIOS2, ADIOS2 to Weft,
// ADIOS2 to ADIOS2. So they see the same neighbours on the machine, and a ratio
// compares runs of one round. The table has the median over the rounds, and the
// least and the greatest. Before each round the machine is looked at for 200 ms:
// rounds that began on a busy one are counted as such.
//
// Every rank is a process of its own, over TCP on the loopback interface; those
// of ADIOS2 are an MPI job. Both sides touch every byte: writers fill their share
// of each array, readers sum what they get and check the sum. Besides rates the
// table has the processor time of both sides for each GB, after the warm-up,
// and the most memory that one of their processes had resident, both as the processes say. The ADIOS2 side is interop/peers/cpp/sst.cpp, which
// does the same by ADIOS2's public interface, with and without MPI; it is compiled in a Debian root
// with ADIOS2 (interop/root.sh). Where there can be no root the Weft rows are
// measured alone, and the table says so.
//
// # Steps within a node
//
// A row is a payload, variables, writer ranks and a queue limit, as above; a line is a row done by Weft or by ADIOS2, on both sides,
// in one of several ways: Weft shares memory (Put and Get, Put and View, Span and View) or uses sockets, ADIOS2 is told to use each
// data plane that could work within a node: RDMA over libfabric's shm, UCX over its shm, WAN. The ratio is to the plane of ADIOS2 that
// is fastest in the row. A plane that crashes or hangs (20 s) is a line that says so; one that ADIOS2 has not got here is told of above the table: ADIOS2 itself takes
// another plane silently, but for a warning that is looked for. Both ends of ADIOS2 see the same /dev/shm, which nobody else sees.
//
// How near that is to what the machine can do is seen by the lines "bare": two processes that share memory and count steps in it, and
// do nothing else but touch the bytes as the line of Weft with the same calls does.
//
// # Growth
//
// What a step of Weft costs through shared memory with 1 to 10000 variables, with as many blocks of one variable, and with 1 to 64 writer
// ranks, which are goroutines of one process. A curve is judged by its steepest part: "linear or better", or not. With -docs docs it
// makes docs/performance.md, with a plot for each curve beside it.
//
// # Operations over shared memory
//
// A row is a latency, a bandwidth or a rate of messages, reads, writes or views (package
// internal/ping, which weft ping uses too), or the longest pause of the garbage collector
// beside a goroutine that waits. In each round every row is done by Weft and, where
// fi_pingpong has such a test, by libfabric: by that of the machine, if the program is
// installed, and by that of the Debian root. A row has a fixed number of
// operations; -seconds and -cpuprofile are refused. Where the receiver sleeps before each message,
// the row is done by two processes that have nothing but an eventfd, too: by that one sees what of it is the kernel's.
//
// # Registrations
//
// A row is a kind of memory, an operation of the cache of registrations (a hit, a miss, an insertion, an invalidation), a number of entries and of goroutines. All
// is done in the process that is started, with a registrar that does nothing: so it is the cache that is measured, and what the loop around it
// costs is measured beside it. In each round each cache is made, filled and closed. A few rows have a registrar that pins pages (internal/pinnic), and say what a hit saves.
// Nobody else has such a cache that could be timed without hardware for RDMA. With -cpuprofile there is a profile for each cache.
//
// # Processes
//
// The process that is started runs the others, one pair at a time, and ends
// them with itself, however it ends. The package is no library.
package main

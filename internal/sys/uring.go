package sys

// UringCode is what an operation of a Uring does.
type UringCode uint8

// The operations, by their numbers in the kernel's interface (IORING_OP_...).
const (
	ReadFixed  UringCode = 4  // read from the descriptor into the pages of a buffer
	WriteFixed UringCode = 5  // write from the pages of a buffer to the descriptor
	SendFixed  UringCode = 47 // send to a TCP or UDP socket what lies in the pages of a buffer, without copying; it needs SendZC
)

// uringSendZC is the number of SendFixed for the probe.
const uringSendZC = SendFixed

// UringOp is an operation.
type UringOp struct {
	Code   UringCode
	FD     int    // a socket or a pipe
	NoWait bool   // done with EAGAIN if it would wait; else it waits, also where the descriptor does not block
	Buffer int    // whose pages
	Addr   uint64 // from where, an address inside of what was given for the buffer. It says which pages, whatever lies there now
	Len    int    // bytes
	User   uint64 // returned with the result
}

// UringResult is the end of an operation.
type UringResult struct {
	User uint64
	N    int   // bytes; for a read 0 at the end of the stream
	Err  error // what the kernel said
	More bool  // of SendFixed: another result follows, without N, when the kernel needs the pages no more
}

// maxUringBuffer is how much memory one buffer may be, in bytes.
const maxUringBuffer = 1 << 30

// CanUring says why this process cannot have a Uring; nil: it can.
func CanUring() error { return Features{}.Check(IOUring) }

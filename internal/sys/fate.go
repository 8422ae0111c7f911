package sys

// Fate is what becomes of a process.
type Fate uint8

// The fates.
const (
	FateUnknown Fate = iota // it cannot be seen here
	FateLives
	FateExits // it does nothing any more, and the kernel has not given back all that it had
	FateGone
)

package memmon

// Monitor sees memory of this process go away. One serves the process, see [Arbiter].
//
// Other middleware that watches memory implements it, and is imported. Its methods may ask and tell the arbiter (Status, Notify, Flush), but
// not change what serves, nor attach or detach: see [Arbiter.Import]. Err and Valid, which are asked by these, may call nothing of it.
type Monitor interface {
	// Name is how people call it: "userfaultfd".
	Name() string
	// Coverage is what it sees. It does not change.
	Coverage() Coverage
	// Start begins. gone may be called from then on, from any goroutine, for memory that went away: it does not block, and takes no
	// lock that Watch or Valid needs. It is a hint: it says when to clean up. What counts is Valid.
	Start(gone func(Range)) error
	// Stop ends, and has joined what Start began. There are no watches any more.
	Stop() error
	// Err is nil as long as it sees everything; once it is not, it never is again until the next Start, and no Watch is valid.
	Err() error
	// Watch begins to look at a range of whole pages. An error means that it cannot: the range is then not cached.
	// Watches of overlapping ranges are independent of each other.
	Watch(r Range) (Watch, error)
}

// Watch is what a monitor knows of a range since [Monitor.Watch].
type Watch interface {
	// Valid says whether all of the range has been what it is all the time. It takes no lock, and is asked on every hit, from any goroutine. It
	// is false before the addresses can be mapped again, and never true again.
	Valid() bool
	// Close ends the watch. It is called once; Valid is not called any more.
	Close()
}

// SelfTester is a Monitor that the arbiter's own test does not reach, since it does not see the system calls of Go: it proves itself.
type SelfTester interface {
	// SelfTest makes memory go away in the ways that the monitor's Coverage lists, and returns those that a Watch has not seen: memory
	// that can go in such a way is not cached on the monitor's word, and if that leaves not even [Private] memory, the monitor does not serve. It is
	// asked whenever a cache attaches. An error says that the monitor does not work at all.
	SelfTest() (unseen []Event, err error)
}

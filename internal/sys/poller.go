package sys

// Events are what a Poller watches a descriptor for, and what it found.
type Events uint32

// The events, by their numbers in the kernel's interface (epoll_ctl(2)). Failed and HungUp need not
// be asked for.
const (
	Readable   Events = 0x1
	WriteReady Events = 0x4
	Failed     Events = 0x8
	HungUp     Events = 0x10
	PeerClosed Events = 0x2000 // the peer of a socket writes no more (EPOLLRDHUP)
	EdgeOnly   Events = 1 << 31
)

// Has says whether all of want are set.
func (e Events) Has(want Events) bool { return e&want == want }

// Event is what a Poller found.
type Event struct {
	Events Events
	Token  uint64 // as given to Add or Modify
}

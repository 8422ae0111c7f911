package sys

import "time"

// TCPUnanswered is what a TCP connection waits for.
type TCPUnanswered struct {
	Pending bool          // something is not acknowledged, or not sent yet for lack of room
	Tries   int           // of the kernel, one after the other, that nothing came back to
	Silent  time.Duration // since the last acknowledgement of any kind
}

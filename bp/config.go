package bp

import (
	"fmt"
	"time"
)

const (
	defaultPoll     = 50 * time.Millisecond
	defaultMaxFiles = 64
	noticeAfter     = 3 * time.Second
)

// Config says how to read a dataset. The zero value reads what is there now.
type Config struct {
	// Follow makes Open wait for the dataset to appear, and Steps wait for
	// more steps until the writer closes. Without it the end of what is there
	// is the end.
	Follow bool
	// Poll is the time between two looks at the size of the index while
	// following; 0 means 50 ms.
	Poll time.Duration
	// Timeout bounds each wait while following, for the dataset and for the
	// next step; 0 means for ever. See [UnfinishedError].
	Timeout time.Duration
	// Notify is called once for each wait that lasts longer than 3 s; nil
	// discards. It must not block.
	Notify func(Notice)
	// MaxFiles bounds the data files that are open at a time; 0 means 64.
	MaxFiles int
	// IgnoreFlatten shows the steps as they were written even when the writer
	// asked readers to present all of them as one.
	IgnoreFlatten bool
	// MaxAlloc bounds the slices that reading makes itself, in bytes; 0 means
	// step.DefaultMaxAlloc.
	MaxAlloc uint64
}

// Notice explains a wait: what for, how long so far, and until when.
type Notice struct {
	Path    string
	Steps   int           // whole steps so far
	Waited  time.Duration // so far
	Timeout time.Duration // 0: for ever
	Missing bool          // the dataset itself is not there yet
}

// String renders the notice as one line.
func (n Notice) String() string {
	what := fmt.Sprintf("the next step of %s (%d so far)", n.Path, n.Steps)
	if n.Missing {
		what = n.Path + " to appear"
	}
	until := "until the writer closes it"
	if n.Timeout > 0 {
		until = fmt.Sprintf("for %v more", (n.Timeout - n.Waited).Round(time.Second))
	}
	return fmt.Sprintf("waiting for %s, %s", what, until)
}

// resolve returns a copy with the defaults filled in.
func (c Config) resolve() Config {
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.MaxFiles <= 0 {
		c.MaxFiles = defaultMaxFiles
	}
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
	return c
}

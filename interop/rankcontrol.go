package interop

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// Words on the stdin of a rank. Its end ends a wait for "go", and means leave
// there; a rank that does not wait for words runs on.
const (
	wordNext  = "go"    // let one step pass (StepWait), or Close (Hold)
	wordLeave = "leave" // close in order before the next step
	wordStats = "stats" // answer with a line STATS
	wordRuns  = "runs"  // answer with a line RUNS: where Weft's own goroutines are
	wordUsage = "usage" // answer with a line USAGE: nanoseconds of the processors. It costs less
)

// control is what a process of a cohort is told while it runs.
type control struct {
	members []member
	leave   chan struct{}
	eof     chan struct{}

	mu    sync.Mutex
	stats func(*RankStats)
}

// member is the control of one rank.
type member struct {
	*control
	next chan struct{} // one value for each word "go"
}

// newControl listens to stdin, for n ranks.
func newControl(n int) *control {
	c := &control{leave: make(chan struct{}), eof: make(chan struct{})}
	for range n {
		c.members = append(c.members, member{c, make(chan struct{}, 1<<16)})
	}
	go c.listen()
	return c
}

func (c *control) member(i int) member { return c.members[i] }

func (c *control) listen() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case wordNext:
			for _, m := range c.members {
				m.next <- struct{}{}
			}
		case wordLeave:
			if !c.leaving() {
				close(c.leave)
			}
		case wordStats:
			c.sayStats()
		case wordUsage:
			say("USAGE", sys.ProcessorTime().Nanoseconds())
		case wordRuns:
			say("RUNS", strings.Join(weftsOwn(), "; "))
		}
	}
	close(c.eof)
}

// passNext waits for "go"; it returns false when the rank shall leave.
func (m member) passNext() bool {
	if m.leaving() {
		return false
	}
	select {
	case <-m.next:
		return true
	case <-m.leave:
		return false
	case <-m.eof:
	}
	select {
	case <-m.next: // said before the end
		return true
	default:
		return false
	}
}

func (c *control) leaving() bool {
	select {
	case <-c.leave:
		return true
	default:
		return false
	}
}

// ended reports whether there will be no more words.
func (c *control) ended() bool {
	select {
	case <-c.eof:
		return true
	default:
		return false
	}
}

// leaveComes reports whether the word comes soon: the ranks of a cohort are told
// one after the other.
func (c *control) leaveComes() bool {
	select {
	case <-c.leave:
		return true
	case <-time.After(soon):
		return false
	}
}

// pause waits, but not longer than until the word "leave".
func (c *control) pause(d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-c.leave:
	}
}

// setStats says what a line STATS tells besides the process.
func (c *control) setStats(f func(*RankStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats = f
}

func (c *control) sayStats() {
	now := takeCounts()
	s := RankStats{Heap: now.heap, Shared: now.shared, Files: now.files, Goroutines: now.goroutines}
	c.mu.Lock()
	if c.stats != nil {
		c.stats(&s)
	}
	c.mu.Unlock()
	say("STATS", mustJSON(s))
}

// mustJSON renders what JSON has a form for.
func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and texts only
	}
	return string(text)
}

// weftsOwn says where goroutines are that Weft has started: what the rank itself does is in
// this package, too.
func weftsOwn() (list []string) {
	const module = "github.com/weft-fabric/weft/"
	all := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(stack, module) && !strings.Contains(stack, module+"interop.") {
			lines := strings.Split(stack, "\n")
			list = append(list, lines[min(1, len(lines)-1)])
		}
	}
	return list
}

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/memmon"
)

// Calls are memory functions of the program's C library.
type Calls interface {
	Map(n int) (at uint64, err error)
	MapAt(at uint64, n int, over bool) error // EEXIST if something lies there, unless over
	Unmap(at uint64, n int) error
	Drop(at uint64, n int) error   // madvise(DONTNEED)
	Lazy(at uint64, n int) error   // madvise(FREE)
	Remove(at uint64, n int) error // madvise(REMOVE)
	Shared(n int) (at uint64, err error)
	Attach(at uint64, n int) (uint64, error) // shmat, with SHM_REMAP unless at is 0
	Detach(at uint64) error
	Grow(at uint64, n, now int) (to uint64, err error) // mremap
	Malloc(n int) (at uint64, err error)
	Free(at uint64)
	Break(by int) (before uint64, err error)
}

// Host is a program with another middleware.
type Host struct {
	Calls Calls
	// Start starts the middleware; Stop, if not nil, ends it.
	Start func() error
	Stop  func() error
	// Monitor is fed by the middleware's hooks.
	Monitor func(*memmon.Arbiter) memmon.Monitor
	// Seen is how many memory events the middleware has seen by its hooks.
	Seen func() uint64
	// Own is the middleware's own test of what it sees; nil: it has none.
	Own func() error
}

// The modes: who tells the cache.
const (
	Forced      = "forced"      // nobody: the cache keeps what it must not
	None        = "none"        // nobody, and it keeps nothing
	Imported    = "imported"    // the middleware's hooks
	Userfaultfd = "userfaultfd" // the kernel
)

// Report is what a program prints, as JSON.
type Report struct {
	Monitor, State, Why string   // of memmon's status
	Hooks               []string // whose hooks it has found
	Rows                map[string]Row
	Own                 string // what its own test says, before Weft began and at the end; empty: it is content, or has none
}

// Row is what became of one kind of event.
type Row struct {
	Rounds  int
	Carries map[string]int // what the wire carried afterwards: OLD, NEW, a mixture
	Hits    uint64         // of registrations before the event
	Seen    uint64         // by the middleware, while the events were made
}

// Main plays for the mode that the first argument names, as many rounds as the second says. A third is the program's.
func Main(h Host) {
	if err := h.main(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: MODE ROUNDS")

func (h Host) main(args []string, out io.Writer) (err error) {
	if len(args) < 2 {
		return errUsage
	}
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := h.Start(); err != nil {
		return err
	}
	if h.Stop != nil {
		defer func() { err = errors.Join(err, h.Stop()) }()
	}
	r := Report{Own: h.own()}
	if err := h.choose(args[0]); err != nil {
		return err
	}
	if err := h.play(&r, args[0] == Forced, rounds); err != nil {
		return err
	}
	r.Own += h.own()
	return json.NewEncoder(out).Encode(r)
}

func (h Host) own() string {
	if h.Own == nil {
		return ""
	}
	if err := h.Own(); err != nil {
		return err.Error() + "\n"
	}
	return ""
}

func (h Host) choose(mode string) error {
	switch mode {
	case Forced, None:
		return nil
	case Imported:
		return memmon.Process().Import(h.Monitor(memmon.Process()))
	}
	return memmon.Process().Choose(mode)
}

// play plays all events beside a cache of the process's arbiter.
func (h Host) play(r *Report, forced bool, rounds int) (err error) {
	card, far, err := pinnic.New(pinnic.Config{})
	if err != nil {
		return err
	}
	cache, err := mrcache.New(card, mrcache.Config{})
	if err != nil {
		return errors.Join(err, card.Close(), far.Close())
	}
	defer func() { err = errors.Join(err, cache.Close(), card.Close(), far.Close()) }()
	p := &player{Host: h, forced: forced, card: card, far: far, cache: cache}
	r.Rows = map[string]Row{}
	for name, happen := range happenings {
		if r.Rows[name], err = p.row(happen, rounds); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s := memmon.Process().Status()
	r.Monitor, r.State, r.Hooks = s.Monitor, s.State.String(), s.Hooks
	if s.Why != nil {
		r.Why = s.Why.Error()
	}
	return nil
}

// Storm is what the program storm prints, as JSON.
type Storm struct {
	Longest time.Duration // an operation took
	Stats   mrcache.Stats
	Events  uint64 // that were posted
	State   string // of the monitor
}

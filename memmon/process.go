package memmon

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

var process = sync.OnceValue(func() *Arbiter {
	e, err := processEvents()
	if err == nil {
		return &Arbiter{events: e}
	}
	a, heapErr := NewArbiter()
	if heapErr != nil { // no descriptor either: hooks in C can tell nothing, and nobody is woken; hits see what Go tells
		a = &Arbiter{events: deafEvents()}
	}
	a.alone = err
	return a
})

// Process is the arbiter of this process.
func Process() *Arbiter { return process() }

// eventsAt are the addresses at which the page of events of a process may lie, so that all who look for it, in Go or C, find the same one: the
// first that is free is taken. They are far from where kernels put programs, libraries and heaps; the last ones are for machines
// with addresses of 39 bits.
var eventsAt = []uint64{0x3e57_4000_0000, 0x2e57_4000_0000, 0x1e57_4000_0000, 0x3e_5740_0000, 0x2e_5740_0000}

var errNoPlace = errors.New("no place for the page of events")

// processEvents finds the page of events of this process, or makes it.
func processEvents() (*events, error) {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: eventsName, Size: eventsBytes})
	if err != nil {
		return nil, fmt.Errorf("memmon: %w", err)
	}
	defer fd.Close() // the mapping stays
	for _, at := range eventsAt {
		b, taken, err := sys.Claim(at, fd, eventsBytes)
		switch {
		case err == nil && !taken:
			e, err := eventsOf(b)
			if err != nil {
				return nil, err
			}
			return e, e.format()
		case err != nil:
			continue
		}
		if is, err := isEvents(at); err != nil { // it may be: a second page would be one that nobody else posts to
			return nil, fmt.Errorf("memmon: what lies at the place of the page of events: %w", err)
		} else if !is {
			continue
		}
		if e, err := foundEvents(sys.BytesAt(at, eventsBytes)); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("memmon: %w", errNoPlace)
}

// isEvents says whether what lies there is called a page of events.
func isEvents(at uint64) (bool, error) {
	list, err := sys.MappingsOf(at, eventsBytes)
	return len(list) == 1 && list[0].Addr == at && list[0].Len >= eventsBytes && list[0].Writable &&
		strings.Contains(list[0].File, eventsName), err
}

// formatPatience is how long another copy may take to write the head of a page that it has just mapped.
const formatPatience = time.Second

// foundEvents is the page that somebody else has made: another copy of Weft, or hooks in C.
func foundEvents(b []byte) (*events, error) {
	e, err := eventsOf(b)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(formatPatience); atomic.LoadUint64(&e.w[wordMagic]) != eventsMagic; {
		if time.Now().After(end) {
			return nil, errNoPlace
		}
	}
	if e.w[wordVersion] != eventsVersion || e.w[wordSlots] != numSlots || e.w[wordProcess] != uint64(os.Getpid()) {
		return nil, errNoPlace
	}
	e.others = true
	if err := e.shareWake(); err != nil { // nobody is woken, and hits see all that is posted: a page of our own would be one that nobody else posts to
		e.wake = noWake()
	}
	return e, nil
}

package memmon

import (
	"slices"
	"strings"
)

// Memory is a class of memory, as the kernel has it.
type Memory uint8

// The classes.
const (
	Private     Memory = iota // private and anonymous: mmap(MAP_PRIVATE|MAP_ANONYMOUS), large blocks of malloc
	Data                      // private and anonymous, of the data segment, which brk(2) moves: small blocks of malloc
	Shared                    // shared, or of a memory file: others can truncate it
	File                      // of a file: others can truncate it
	SystemV                   // shmat(2)
	numMemories               //
)

var memoryNames = [numMemories]string{"private memory", "the data segment", "shared memory", "file mappings", "System V memory"}

// String is for people.
func (m Memory) String() string {
	if m < numMemories {
		return memoryNames[m]
	}
	return "unknown memory"
}

// AllMemory lists the classes.
func AllMemory() []Memory {
	all := make([]Memory, numMemories)
	for i := range all {
		all[i] = Memory(i)
	}
	return all
}

// Event is something after which an address no longer means the pages that it meant.
type Event uint8

// The events.
const (
	Unmap     Event = iota // munmap, all or a part
	MapOver                // mmap(MAP_FIXED) over it
	MoveAway               // mremap that moves or shrinks it
	DontNeed               // madvise(MADV_DONTNEED)
	Free                   // madvise(MADV_FREE)
	Remove                 // madvise(MADV_REMOVE)
	Break                  // brk and sbrk that shrink
	Detach                 // shmdt
	PunchHole              // fallocate(FALLOC_FL_PUNCH_HOLE) through a descriptor
	Truncate               // ftruncate through a descriptor, also by another process
	numEvents
)

var eventNames = [numEvents]string{
	"munmap", "mmap(MAP_FIXED)", "mremap", "madvise(DONTNEED)", "madvise(FREE)", "madvise(REMOVE)", "brk", "shmdt", "fallocate(PUNCH_HOLE)", "ftruncate",
}

// String is the call.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return "unknown event"
}

// Caller is who makes the call.
type Caller uint8

// The callers.
const (
	Library Caller = iota // through the C library's functions
	Raw                   // by system calls of its own: Go (also package syscall and the runtime), static programs, other runtimes
	numCallers
)

// String is for people.
func (c Caller) String() string {
	if c < numCallers {
		return [numCallers]string{"the C library", "raw system calls"}[c]
	}
	return "unknown callers"
}

// can lists what can happen to memory of each class.
var can = [numMemories][]Event{
	Private: {Unmap, MapOver, MoveAway, DontNeed, Free},
	Data:    {Unmap, MapOver, MoveAway, DontNeed, Free, Break},
	Shared:  {Unmap, MapOver, MoveAway, DontNeed, Remove, PunchHole, Truncate},
	File:    {Unmap, MapOver, MoveAway, DontNeed, PunchHole, Truncate},
	SystemV: {MapOver, MoveAway, DontNeed, Remove, Detach},
}

// elsewhere lists what other processes can do to memory of each class, which no monitor of this one sees.
var elsewhere = [numMemories][]Event{
	Shared:  {Remove, PunchHole, Truncate},
	File:    {PunchHole, Truncate},
	SystemV: {Remove},
}

// Coverage is what a monitor sees, in this process.
type Coverage struct {
	Events  []Event
	Callers []Caller
	Classes []Memory // of which it can watch ranges; nil: all
	Note    string   // for people: what else is to be known
}

// Answers says whether the monitor sees all that can happen to memory of a class, whoever does it, and else what it misses. That is never so of memory
// that other processes can change, whatever a monitor says of itself: only private memory is answered for. Of a class that it cannot watch (Classes) it misses nothing in particular: false, nil.
// Without the raw system calls it answers only for memory whose holder promises to use the C library: that is for the program to know
// who imports such a monitor.
func (c Coverage) Answers(m Memory) (bool, []Event) {
	if m >= numMemories || c.Classes != nil && !slices.Contains(c.Classes, m) {
		return false, nil
	}
	var misses []Event
	for _, e := range can[m] {
		if !slices.Contains(c.Events, e) || slices.Contains(elsewhere[m], e) {
			misses = append(misses, e)
		}
	}
	return len(misses) == 0, misses
}

// without is the coverage of who does not see some events.
func (c Coverage) without(unseen []Event) Coverage {
	c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e Event) bool { return slices.Contains(unseen, e) })
	return c
}

// equal says whether both see the same events.
func (c Coverage) equal(o Coverage) bool { return slices.Equal(c.Events, o.Events) }

// minus lists the events that only c sees, for people.
func (c Coverage) minus(o Coverage) string {
	var words []string
	for _, e := range c.without(o.Events).Events {
		words = append(words, e.String())
	}
	return strings.Join(words, ", ")
}

// String lists what it sees, for people.
func (c Coverage) String() string {
	var words, who []string
	for _, e := range c.Events {
		words = append(words, e.String())
	}
	for _, w := range c.Callers {
		who = append(who, w.String())
	}
	s := "nothing"
	if len(words) > 0 && len(who) > 0 {
		s = strings.Join(words, ", ") + " by " + strings.Join(who, " and ")
	}
	if c.Note != "" {
		s += "; " + c.Note
	}
	return s
}

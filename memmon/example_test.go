package memmon_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/weft-fabric/weft/memmon"
)

// An arena is memory whose registration can be kept without a monitor: whoever has a proof of it sees that its pages have gone.
func ExampleArbiter_Prove() {
	arena, err := memmon.NewArena(1 << 20)
	if err != nil {
		panic(err)
	}
	defer arena.Close()
	proof, err := memmon.Process().Prove(arena) // and then register arena.Bytes() with the card
	if err != nil {
		panic(err)
	}
	defer proof.Close()
	fmt.Println("before:", proof.Valid())
	if err := arena.Discard(0, os.Getpagesize()); err != nil {
		panic(err)
	}
	fmt.Println("after:", proof.Valid())
	// Output:
	// before: true
	// after: false
}

// pool is memory that a program maps itself.
type pool struct {
	memory []byte
	number atomic.Uint64
}

// Generation makes the pool the owner of its memory.
func (p *pool) Generation() uint64 { return p.number.Load() }

// goes has the memory go away. Who registers it while it does has pages that are not there any more: so the number changes before and after.
func (p *pool) goes() {
	p.number.Add(1)
	memmon.Process().Notify(memmon.RangeOf(p.memory))
	p.memory = nil // munmap, really
	p.number.Add(1)
}

// Who maps memory answers for it: by a number that changes before the memory goes and after that.
func ExampleMapped() {
	p := &pool{memory: make([]byte, 4096)} // of a mapping, really
	proof, err := memmon.Process().Prove(memmon.Mapped(p.memory[:100], p))
	if err != nil {
		panic(err)
	}
	defer proof.Close()
	fmt.Println("before:", proof.Valid())
	p.goes()
	fmt.Println("after:", proof.Valid())
	// Output:
	// before: true
	// after: false
}

// Another library in the process keeps registrations, and cannot see what Go unmaps: it is told. With UCX the function would call
// ucm_vm_munmap.
func ExampleArbiter_Export() {
	stop := memmon.Process().Export(func(r memmon.Range) { fmt.Println(r.Len, "bytes go away") })
	defer stop()
	arena, err := memmon.NewArena(1 << 16)
	if err != nil {
		panic(err)
	}
	if err := arena.Close(); err != nil {
		panic(err)
	}
	// Output: 65536 bytes go away
}

// A cache of one registration: it attaches, has the memory proven before it is registered, and asks at each use.
func ExampleArbiter_Attach() {
	arbiter := memmon.Process()
	detach := arbiter.Attach(func(memmon.Range) {}, nil) // a cache that wakes up here gives dead registrations back early
	defer detach()

	buffer := make([]byte, 1<<16)
	epoch := arbiter.Epoch()
	proof, err := arbiter.Prove(memmon.HeapBytes(buffer)) // and then register buffer with the card
	if err != nil {
		panic(err)
	}
	defer proof.Close()
	hit := func() bool {
		if !arbiter.Enabled() || arbiter.Epoch() != epoch {
			return false
		}
		held, ok := proof.Hold()
		use(held) // until the operation has ended
		return ok
	}
	fmt.Println("at a use:", hit())
	arbiter.Flush()
	fmt.Println("after a flush:", hit())
	// Output:
	// at a use: true
	// after a flush: false
}

func use(any) {}

// A program that maps and unmaps all of its memory itself is a monitor with little effort: it tells what goes, and shows that it does. Memory
// then needs no owner.
func ExampleArbiter_Mailbox() {
	arbiter, err := memmon.NewArbiter() // of this example alone; a program takes Process()
	if err != nil {
		panic(err)
	}
	defer arbiter.Close()
	allocate := func() *memmon.Arena { // mmap, really
		pages, err := arbiter.NewArena(1 << 16)
		if err != nil {
			panic(err)
		}
		return pages
	}
	free := func(pages *memmon.Arena) {
		arbiter.Notify(memmon.RangeOf(pages.Bytes()))
		if err := pages.Close(); err != nil { // munmap, really
			panic(err)
		}
	}
	err = arbiter.Import(arbiter.Mailbox(memmon.MailboxConfig{
		By: "the pages of this program",
		Coverage: memmon.Coverage{ // of the other events the program's word is taken: they do not happen to this memory
			Events:  []memmon.Event{memmon.Unmap, memmon.MapOver, memmon.MoveAway, memmon.DontNeed, memmon.Free},
			Callers: []memmon.Caller{memmon.Library, memmon.Raw},
			Classes: []memmon.Memory{memmon.Private},
		},
		Probe: func(e memmon.Event) (memmon.Range, error) {
			if e != memmon.Unmap {
				return memmon.Range{}, errors.ErrUnsupported
			}
			pages := allocate()
			defer free(pages)
			return memmon.RangeOf(pages.Bytes()), nil
		},
	}))
	if err != nil {
		panic(err)
	}
	detach := arbiter.Attach(func(memmon.Range) {}, nil)
	defer detach()
	fmt.Println(arbiter.Status().Monitor, "is", arbiter.Status().State)

	pages := allocate()
	proof, err := arbiter.Prove(memmon.Mapped(pages.Bytes(), nil))
	if err != nil {
		panic(err)
	}
	defer proof.Close()
	fmt.Println("before:", proof.Valid())
	free(pages)
	fmt.Println("after:", proof.Valid())
	// Output:
	// mailbox of the pages of this program is running
	// before: true
	// after: false
}

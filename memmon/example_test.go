package memmon_test

import (
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

// goes is called before the memory is unmapped.
func (p *pool) goes() {
	p.number.Add(1)
	memmon.Process().Notify(memmon.RangeOf(p.memory))
}

// Who maps memory answers for it: by a number that changes before the memory goes.
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

//go:build peers

// Package libc is the memory functions of the program's C library, as hooks of others see them: the calls go through the library, not past it as
// Go's do.
package libc

/*
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

// Blocks are mappings of their own, so that free gives them back at once.
static void blocks_are_mappings(void) { mallopt(M_MMAP_THRESHOLD, 128 << 10); }

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// flags: 0, MAP_FIXED or MAP_FIXED_NOREPLACE.
static uintptr_t map_at(uintptr_t at, size_t n, int flags)
{
	void *p = mmap((void *)at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}
static int unmap(uintptr_t at, size_t n) { return munmap((void *)at, n); }
static int drop(uintptr_t at, size_t n, int advice) { return madvise((void *)at, n, advice); }
static uintptr_t shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}
// A System V segment that goes with its last attachment; 0: at any address, else over what lies there.
static uintptr_t attached(uintptr_t at, size_t n)
{
	int id = shmget(IPC_PRIVATE, n, IPC_CREAT | 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, (void *)at, at ? SHM_REMAP : 0);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return p == (void *)-1 ? 0 : (uintptr_t)p;
}
static int detached(uintptr_t at) { return shmdt((void *)at); }
// To another place that is named one cannot: UCX's mremap does not pass the fifth argument on.
static uintptr_t grown(uintptr_t at, size_t n, size_t now)
{
	void *p = mremap((void *)at, n, now, MREMAP_MAYMOVE);
	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}
static uintptr_t block(size_t n) { return (uintptr_t)malloc(n); }
static void give(uintptr_t at) { free((void *)at); }
static uintptr_t brk_by(intptr_t n) { void *p = sbrk(n); return p == (void *)-1 ? 0 : (uintptr_t)p; }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"

	"github.com/weft-fabric/weft/memmon"
)

// Calls are the functions. The errors are those that errno says.
type Calls struct{}

// New readies the allocator: blocks of 128 KiB and more are mappings of their own, which free unmaps.
func New() Calls {
	C.blocks_are_mappings()
	return Calls{}
}

func failed(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

// Map maps private memory.
func (Calls) Map(n int) (uint64, error) { return mapAt(0, n, 0) }

// MapAt maps private memory at an address; with over, whatever lies there.
func (Calls) MapAt(at uint64, n int, over bool) error {
	flags := C.int(C.MAP_FIXED_NOREPLACE)
	if over {
		flags = C.MAP_FIXED
	}
	_, err := mapAt(at, n, flags)
	return err
}

func mapAt(at uint64, n int, flags C.int) (uint64, error) {
	p, err := C.map_at(C.uintptr_t(at), C.size_t(n), flags)
	if p == 0 {
		return 0, failed("mmap", err)
	}
	return uint64(p), nil
}

// Unmap unmaps.
func (Calls) Unmap(at uint64, n int) error {
	if r, err := C.unmap(C.uintptr_t(at), C.size_t(n)); r != 0 {
		return failed("munmap", err)
	}
	return nil
}

// Drop gives the pages back, madvise(MADV_DONTNEED).
func (Calls) Drop(at uint64, n int) error { return advise(at, n, C.MADV_DONTNEED) }

// Lazy gives the pages back when the kernel wants them, madvise(MADV_FREE).
func (Calls) Lazy(at uint64, n int) error { return advise(at, n, C.MADV_FREE) }

// Remove gives the pages of shared memory back, madvise(MADV_REMOVE).
func (Calls) Remove(at uint64, n int) error { return advise(at, n, C.MADV_REMOVE) }

func advise(at uint64, n int, advice C.int) error {
	if r, err := C.drop(C.uintptr_t(at), C.size_t(n), advice); r != 0 {
		return failed("madvise", err)
	}
	return nil
}

// Shared maps memory that children of a fork would share.
func (Calls) Shared(n int) (uint64, error) {
	p, err := C.shared(C.size_t(n))
	if p == 0 {
		return 0, failed("mmap", err)
	}
	return uint64(p), nil
}

// Attach attaches a new System V segment; at an address, over the one that is attached there.
func (Calls) Attach(at uint64, n int) (uint64, error) {
	p, err := C.attached(C.uintptr_t(at), C.size_t(n))
	if p == 0 {
		return 0, failed("shmat", err)
	}
	return uint64(p), nil
}

// Detach detaches a System V segment.
func (Calls) Detach(at uint64) error {
	if r, err := C.detached(C.uintptr_t(at)); r != 0 {
		return failed("shmdt", err)
	}
	return nil
}

// Grow makes memory larger, and returns where it is then.
func (Calls) Grow(at uint64, n, now int) (uint64, error) {
	p, err := C.grown(C.uintptr_t(at), C.size_t(n), C.size_t(now))
	if p == 0 {
		return 0, failed("mremap", err)
	}
	return uint64(p), nil
}

// Malloc gets a block.
func (Calls) Malloc(n int) (uint64, error) {
	p, err := C.block(C.size_t(n))
	if p == 0 {
		return 0, failed("malloc", err)
	}
	return uint64(p), nil
}

// Free gives a block back.
func (Calls) Free(at uint64) { C.give(C.uintptr_t(at)) }

// Break moves the end of the data segment, and returns where it was.
func (Calls) Break(by int) (uint64, error) {
	p, err := C.brk_by(C.intptr_t(by))
	if p == 0 {
		return 0, failed("sbrk", err)
	}
	return uint64(p), nil
}

// Coverage is what those see who have hooked all memory functions of the C library.
var Coverage = memmon.Coverage{
	Events: []memmon.Event{
		memmon.Unmap, memmon.MapOver, memmon.MoveAway, memmon.DontNeed, memmon.Free, memmon.Remove, memmon.Break, memmon.Detach,
	},
	Callers: []memmon.Caller{memmon.Library},
}

// Probe has a page go by an event, through the C library, and says where it was.
func Probe(e memmon.Event) (r memmon.Range, err error) {
	c, page := Calls{}, os.Getpagesize()
	if e == memmon.Break {
		at, err := c.Break(page)
		if err == nil {
			_, err = c.Break(-page)
		}
		return memmon.Range{Addr: at, Len: uint64(page)}, err
	}
	at, err := c.Map(2 * page)
	if err != nil {
		return memmon.Range{}, err
	}
	defer func() { err = errors.Join(err, c.Unmap(at, 2*page)) }()
	r = memmon.Range{Addr: at, Len: uint64(page)}
	switch e {
	case memmon.Unmap:
		return r, c.Unmap(at, page)
	case memmon.MapOver:
		return r, c.MapAt(at, page, true)
	case memmon.MoveAway: // behind it is its other page, so it has to move
		to, err := c.Grow(at, page, 2*page)
		if err == nil {
			err = c.Unmap(to, 2*page)
		}
		return r, err
	case memmon.DontNeed:
		return r, c.Drop(at, page)
	case memmon.Free:
		return r, c.Lazy(at, page)
	}
	return r, errors.ErrUnsupported
}

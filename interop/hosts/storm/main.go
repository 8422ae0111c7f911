//go:build peers

// The program storm has hooks that post from inside of every allocation, and four threads that post all the time, also memory that is registered;
// beside them it registers, looks up and evicts. It prints how long the longest operation took.
package main

/*
#cgo CFLAGS: -D_GNU_SOURCE -I${SRCDIR}/../../../memmon
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include "weft_memory_events.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), __libc_free(void *);

// The program's own come first.
void *malloc(size_t n)
{
	void *p = __libc_malloc(n);
	weft_events_post(p, n);
	return p;
}
void *calloc(size_t k, size_t n)
{
	void *p = __libc_calloc(k, n);
	weft_events_post(p, k * n);
	return p;
}
void *realloc(void *old, size_t n)
{
	weft_events_post(old, 1);
	return __libc_realloc(old, n);
}
void free(void *p)
{
	weft_events_post(p, p != NULL);
	__libc_free(p);
}

static uintptr_t memory;
static size_t memory_bytes, piece_bytes;
static volatile int over;
static pthread_t threads[4];

// storm posts: of 1024 events one is of a registered piece.
static void *storm(void *arg)
{
	uint64_t n, x = (uintptr_t)arg + 1;
	for (n = 0; !over; n++) {
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		if (n % 1024)
			weft_events_post((void *)(memory - 4096 * (1 + x % 4096)), 4096);
		else
			weft_events_post((void *)(memory + x % (memory_bytes / piece_bytes) * piece_bytes), 1);
		if (n % 256 == 0)
			sched_yield();
	}
	return NULL;
}

static int ready(void) { return weft_events_open(); }

static int begin(uintptr_t at, size_t bytes, size_t piece)
{
	uintptr_t i;
	int r = 0;
	memory = at, memory_bytes = bytes, piece_bytes = piece;
	for (i = 0; i < 4 && r == 0; i++)
		r = pthread_create(&threads[i], NULL, storm, (void *)i);
	return r;
}

static void end(void)
{
	int i;
	over = 1;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static uintptr_t block(size_t n) { return (uintptr_t)malloc(n); }
static void give(uintptr_t p) { free((void *)p); }
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/interop/hosts"
	"github.com/weft-fabric/weft/interop/hosts/libc"
	"github.com/weft-fabric/weft/memmon"
)

const (
	pieces     = 64
	pieceBytes = 64 << 10 // a page, where these are large: a piece is a registration of its own
	kept       = 24       // of the pieces, so that there are evictions
	goroutines = 8
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// registrar allocates as drivers do.
type registrar struct{}

func (registrar) Register(b []byte) (uint64, error) {
	return uint64(C.block(C.size_t(len(b) / 64))), nil
}

func (registrar) Deregister(h uint64) error {
	C.give(C.uintptr_t(h))
	return nil
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: storm OPERATIONS")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	at, err := libc.New().Map(pieces * pieceBytes)
	if err != nil {
		return err
	}
	if r := C.ready(); r != 0 {
		return fmt.Errorf("the page of events: error %d", int(r))
	}
	if err := memmon.Process().Import(stormy(memmon.Process())); err != nil {
		return err
	}
	if r := C.begin(C.uintptr_t(at), pieces*pieceBytes, pieceBytes); r != 0 {
		return fmt.Errorf("threads: error %d", int(r))
	}
	cache, err := mrcache.New(registrar{}, mrcache.Config{MaxCount: kept})
	if err != nil {
		return err
	}
	longest, err := operate(cache, sys.BytesAt(at, pieces*pieceBytes), n)
	C.end()
	r := hosts.Storm{Longest: longest, Stats: cache.Stats(), Events: memmon.Process().Status().Events, State: memmon.Process().Status().State.String()}
	if err := errors.Join(err, cache.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// stormy is the monitor: the program posts what it says.
func stormy(a *memmon.Arbiter) memmon.Monitor {
	return a.Mailbox(memmon.MailboxConfig{By: "the storm", Coverage: libc.Coverage, Probe: func(memmon.Event) (memmon.Range, error) {
		return memmon.Range{}, errors.ErrUnsupported
	}})
}

// operate registers and releases pieces, and says how long the longest of both took.
func operate(cache *mrcache.Cache[uint64], memory []byte, n int) (time.Duration, error) {
	var longest, left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	errs := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				i := rand.IntN(pieces)
				began := time.Now()
				r, err := cache.Acquire(memmon.Mapped(memory[i*pieceBytes:(i+1)*pieceBytes], nil))
				if err == nil {
					err = r.Release()
				}
				if err != nil && !errors.Is(err, mrcache.ErrRemapped) {
					errs <- err
					return
				}
				for took := int64(time.Since(began)); ; {
					if most := longest.Load(); took <= most || longest.CompareAndSwap(most, took) {
						break
					}
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return time.Duration(longest.Load()), nil
	}
}

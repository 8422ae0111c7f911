//go:build peers

// The program openmpi is an MPI process of one, whose Open MPI has its memory hooks in the C library. A part of the program registers with them
// as Open MPI's own parts do, and posts what they tell.
package main

/*
#cgo pkg-config: ompi-c
#cgo LDFLAGS: -lopen-pal
#cgo CFLAGS: -D_GNU_SOURCE -I${SRCDIR}/../../../memmon
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include "weft_memory_events.h"

// Of Open MPI's libopen-pal: what its parts call.
typedef void (*release)(void *at, size_t n, void *arg, bool from_alloc);
int opal_mem_hooks_register_release(release f, void *arg);

static uint64_t seen_by_other;
static void gone(void *at, size_t n, void *arg, bool from_alloc) { weft_events_post(at, n); }
static void count(void *at, size_t n, void *arg, bool from_alloc) { __atomic_fetch_add(&seen_by_other, 1, __ATOMIC_SEQ_CST); }

static int start(void)
{
	int r = MPI_Init(NULL, NULL);
	if (r == 0)
		r = weft_events_open();
	if (r == 0)
		r = opal_mem_hooks_register_release(gone, NULL);
	if (r == 0)
		r = opal_mem_hooks_register_release(count, NULL);
	return r;
}
static uint64_t seen(void) { return __atomic_load_n(&seen_by_other, __ATOMIC_SEQ_CST); }
static int stop(void) { return MPI_Finalize(); }
*/
import "C"

import (
	"fmt"

	"github.com/weft-fabric/weft/interop/hosts"
	"github.com/weft-fabric/weft/interop/hosts/libc"
	"github.com/weft-fabric/weft/memmon"
)

func main() {
	hosts.Main(hosts.Host{
		Calls: libc.New(),
		Start: func() error {
			if r := C.start(); r != 0 {
				return fmt.Errorf("start of Open MPI: error %d; has it hooks? (a pml or mtl that needs them: OMPI_MCA_pml=ucx)", int(r))
			}
			return nil
		},
		Stop: func() error {
			if r := C.stop(); r != 0 {
				return fmt.Errorf("MPI_Finalize: error %d", int(r))
			}
			return nil
		},
		Monitor: func(a *memmon.Arbiter) memmon.Monitor {
			return a.Mailbox(memmon.MailboxConfig{By: "Open MPI", Coverage: libc.Coverage, Probe: libc.Probe})
		},
		Seen: func() uint64 { return uint64(C.seen()) },
	})
}

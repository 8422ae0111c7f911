//go:build peers

// The program ucx has UCX's memory hooks, whose events a handler posts. With a third argument, external, it tells UCX that others watch memory, and passes
// on what is posted to Weft.
package main

/*
#cgo LDFLAGS: -lucm -lucs
#cgo CFLAGS: -D_GNU_SOURCE -I${SRCDIR}/../../../memmon
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucm/api/ucm.h>
#include "weft_memory_events.h"

static uint64_t seen_by_other;
static int external;

static void gone(ucm_event_type_t type, ucm_event_t *event, void *arg)
{
	__atomic_fetch_add(&seen_by_other, 1, __ATOMIC_SEQ_CST);
	if (!external)
		weft_events_post(event->vm_unmapped.address, event->vm_unmapped.size);
}
static void pass(const void *at, size_t n, void *arg) { ucm_vm_munmap((void *)at, n); }

static int start(int others)
{
	int r = weft_events_open();
	external = others;
	if (external)
		ucm_set_external_event(UCM_EVENT_VM_UNMAPPED);
	if (r == 0)
		r = ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 0, gone, NULL);
	if (r == 0)
		r = weft_events_prove();
	return r;
}
static int subscribe(void) { return weft_events_subscribe(pass, NULL); }
static uint64_t seen(void) { return __atomic_load_n(&seen_by_other, __ATOMIC_SEQ_CST); }
static int own(void) { return external ? ucm_test_external_events(UCM_EVENT_VM_UNMAPPED) : ucm_test_events(UCM_EVENT_VM_UNMAPPED); }
static void goes(uintptr_t at, size_t n) { ucm_vm_munmap((void *)at, n); }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/weft-fabric/weft/interop/hosts"
	"github.com/weft-fabric/weft/interop/hosts/libc"
	"github.com/weft-fabric/weft/memmon"
)

var (
	errDeaf = errors.New("UCX's own test passes although nobody tells it")
	errGo   = errors.New("UCX was not told of memory that Go took away")
)

func main() {
	external := slices.Contains(os.Args, "external")
	hosts.Main(hosts.Host{
		Calls:   libc.New(),
		Start:   func() error { return start(external) },
		Monitor: monitor,
		Seen:    func() uint64 { return uint64(C.seen()) },
		Own:     own,
	})
}

func start(external bool) error {
	others := C.int(0)
	if external {
		others = 1
	}
	if r := C.start(others); r != 0 {
		return fmt.Errorf("start of UCX: error %d", int(r))
	}
	memmon.Process().Export(func(r memmon.Range) { C.goes(C.uintptr_t(r.Addr), C.size_t(r.Len)) })
	if !external {
		return nil
	}
	if C.own() == 0 {
		return errDeaf
	}
	if r := C.subscribe(); r != 0 {
		return fmt.Errorf("subscribe: error %d", int(r))
	}
	return nil
}

// own is UCX's test of what it sees through the C library, and ours of what Go takes away.
func own() error {
	if r := C.own(); r != 0 {
		return fmt.Errorf("UCX's own test: status %d", int(r))
	}
	a, err := memmon.NewArena(1)
	if err != nil {
		return err
	}
	before := C.seen()
	if err := a.Close(); err != nil {
		return err
	}
	if C.seen() == before {
		return errGo
	}
	return nil
}

func monitor(a *memmon.Arbiter) memmon.Monitor {
	return a.Mailbox(memmon.MailboxConfig{By: "UCX", Coverage: libc.Coverage}) // what it has shown in start
}

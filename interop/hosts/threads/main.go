//go:build peers

// The program threads has eight threads of C that map, drop and unmap memory all the time, while caches come and go, and with them the monitor. At the end, without
// them, a child of fork, in C, uses the allocator beside a cache that is in use.
package main

/*
#cgo CFLAGS: -D_GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over;
static volatile uint64_t calls;
static pthread_t threads[8];

static void *work(void *arg)
{
	size_t half = 8 * (size_t)sysconf(_SC_PAGESIZE);
	(void)arg;
	while (!over) {
		char *p = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			abort();
		memset(p, 1, 2 * half);
		if (madvise(p, half, MADV_DONTNEED) != 0 || p[0] != 0 || p[half] != 1 || munmap(p, 2 * half) != 0)
			abort();
		__atomic_fetch_add(&calls, 3, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int begin(void)
{
	int i, r = 0;
	for (i = 0; i < 8 && r == 0; i++)
		r = pthread_create(&threads[i], NULL, work, NULL);
	return r;
}

static uint64_t end(void)
{
	int i;
	over = 1;
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return calls;
}

// child is what a child of fork ends with that mallocs and frees, small and large.
static int child(void)
{
	int i, status;
	pid_t pid = fork();
	if (pid == 0) {
		for (i = 0; i < 1000; i++) {
			char *p = malloc(i % 2 ? 100 : 1 << 20);
			if (!p)
				_exit(1);
			p[0] = 1;
			free(p);
		}
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weft-fabric/weft/interop/hosts"
	"github.com/weft-fabric/weft/interop/hosts/libc"
	"github.com/weft-fabric/weft/memmon"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

var (
	errUsage = errors.New("usage: threads MONITOR ROUNDS")
	errChild = errors.New("a child of fork")
)

func run(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	a := memmon.Process()
	if args[0] == hosts.Imported {
		err = a.Import(a.Mailbox(memmon.MailboxConfig{By: "the patcher", Coverage: libc.Coverage}))
	} else {
		err = a.Choose(args[0])
	}
	if err != nil {
		return err
	}
	calls := libc.New()
	if r := C.begin(); r != 0 {
		return fmt.Errorf("threads: error %d", int(r))
	}
	var said hosts.Churn
	for range rounds {
		if err := said.Round(calls, func() {}); err != nil {
			return err
		}
	}
	said.Calls = uint64(C.end())
	err = said.Round(calls, func() {
		before := a.Status().Events
		said.Child = int(C.child())
		said.Posts = a.Status().Events - before
	})
	if err != nil {
		return err
	}
	if said.Child != 0 {
		return fmt.Errorf("%w ended with %d", errChild, said.Child)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

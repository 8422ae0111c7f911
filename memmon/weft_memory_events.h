/*
 * Tells Weft, in the same process, of memory that goes away. For C and C++ libraries that hear of that: those that wrap or patch
 * munmap and its like, allocators, and programs that unmap what they have given to Weft.
 *
 *	weft_events_open();            once, at start: finds the page of events of this process, or makes it. 0, or an errno
 *	weft_events_post(addr, bytes); each time, BEFORE the memory goes (munmap, mremap away or smaller, mmap with MAP_FIXED
 *	                               over it, madvise DONTNEED FREE REMOVE, brk down, shmdt)
 *	weft_events_prove();           after the hooks are in place: unmaps a page through them, and says whether that was posted. 0, or
 *	                               an errno (EPROTO: it was not). Weft takes the word of hooks in C only if this was 0, or if its own
 *	                               probe succeeds (memmon.MailboxConfig)
 *
 * weft_events_post may be called by any thread, in any place: inside of malloc and free, in a signal handler, while another post is
 * interrupted. It takes no lock, allocates nothing, and calls nothing but write(2), to an event descriptor that does not
 * block, when Weft watches memory near by; errno is kept. Before weft_events_open, and in the child of a fork, it does nothing.
 *
 * It is one header: each library that includes it has its own pointer to the one page of the process. Linux, GCC or Clang, C99 or C++.
 * The layout is that of memmon/events.go.
 */
#ifndef WEFT_MEMORY_EVENTS_H
#define WEFT_MEMORY_EVENTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define WEFT_EVENTS_NAME "weft-memory-events"
#define WEFT_EVENTS_MAGIC UINT64_C(0x53544e5645544657)
#define WEFT_EVENTS_VERSION 1
#define WEFT_EVENTS_SLOTS 1024
#define WEFT_EVENTS_WANTED 512
#define WEFT_EVENTS_GRANULE 21 /* 2 MiB */

struct weft_events {
	uint64_t magic, version, slots, process, wake, proven, unused0[2];
	uint64_t begun, unused1[7];
	uint64_t done, unused2[15];
	uint64_t wanted[WEFT_EVENTS_WANTED];
	uint64_t unused3[1024 - 32 - WEFT_EVENTS_WANTED];
	struct {
		uint64_t address, bytes;
	} slot[WEFT_EVENTS_SLOTS];
};

/* The page, for this library. */
static struct weft_events *weft_events_page;

static void weft_events_in_child(void)
{
	weft_events_page = NULL;
}

/* Whether a mapping that begins at an address is a page of events. */
static int weft_events_named(uintptr_t at)
{
	char line[512];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	if (!f)
		return 0;
	while (!found && fgets(line, sizeof line, f)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from == at)
			found = to - from >= sizeof(struct weft_events) && strstr(line, WEFT_EVENTS_NAME) != NULL;
	}
	fclose(f);
	return found;
}

static int weft_events_usable(struct weft_events *e)
{
	long tries;
	for (tries = 0; __atomic_load_n(&e->magic, __ATOMIC_ACQUIRE) != WEFT_EVENTS_MAGIC; tries++)
		if (tries > 100000000) /* somebody has just mapped it, and writes the head */
			return 0;
	return e->version == WEFT_EVENTS_VERSION && e->slots == WEFT_EVENTS_SLOTS && e->process == (uint64_t)getpid();
}

static inline int weft_events_open(void)
{
	static const uint64_t places[] = {UINT64_C(0x3e5740000000), UINT64_C(0x2e5740000000), UINT64_C(0x1e5740000000),
					  UINT64_C(0x3e57400000), UINT64_C(0x2e57400000)};
	size_t i;
	int fd, err = ENOSPC;
	if (weft_events_page)
		return 0;
	fd = (int)syscall(SYS_memfd_create, WEFT_EVENTS_NAME, 1u /* MFD_CLOEXEC */);
	if (fd < 0)
		return errno;
	if (ftruncate(fd, sizeof(struct weft_events)) != 0) {
		err = errno;
		close(fd);
		return err;
	}
	for (i = 0; i < sizeof places / sizeof *places; i++) {
		void *at = (void *)(uintptr_t)places[i];
		struct weft_events *e = (struct weft_events *)at;
		void *got = mmap(at, sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
		if (got == at) {
			e->version = WEFT_EVENTS_VERSION;
			e->slots = WEFT_EVENTS_SLOTS;
			e->process = (uint64_t)getpid();
			__atomic_store_n(&e->magic, WEFT_EVENTS_MAGIC, __ATOMIC_RELEASE);
		} else if (got != MAP_FAILED) { /* a kernel that does not know the flag: the address was a hint */
			munmap(got, sizeof *e);
			continue;
		} else if (errno != EEXIST || !weft_events_named((uintptr_t)at) || !weft_events_usable(e)) {
			continue;
		}
		pthread_atfork(NULL, NULL, weft_events_in_child);
		weft_events_page = e;
		err = 0;
		break;
	}
	close(fd);
	return err;
}

static inline void weft_events_post(const void *address, size_t bytes)
{
	struct weft_events *e = weft_events_page;
	uint64_t from = (uint64_t)(uintptr_t)address, n, g, last;
	if (!e || !bytes)
		return;
	n = __atomic_fetch_add(&e->begun, 1, __ATOMIC_SEQ_CST) % WEFT_EVENTS_SLOTS;
	__atomic_store_n(&e->slot[n].address, from, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->slot[n].bytes, (uint64_t)bytes, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&e->done, 1, __ATOMIC_SEQ_CST);
	last = (from + bytes - 1) >> WEFT_EVENTS_GRANULE;
	for (g = from >> WEFT_EVENTS_GRANULE, n = 0; g <= last && n < WEFT_EVENTS_WANTED; g++, n++) {
		if (__atomic_load_n(&e->wanted[g % WEFT_EVENTS_WANTED], __ATOMIC_RELAXED)) {
			uint64_t wake = __atomic_load_n(&e->wake, __ATOMIC_RELAXED), one = 1;
			int kept = errno;
			if (wake && syscall(SYS_write, (int)(wake - 1), &one, sizeof one) < 0) { /* full: it is rung */
			}
			errno = kept;
			return;
		}
	}
}

static inline int weft_events_prove(void)
{
	struct weft_events *e = weft_events_page;
	uint64_t before, n;
	long page = sysconf(_SC_PAGESIZE);
	void *at;
	if (!e)
		return EINVAL;
	at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return errno;
	*(volatile char *)at = 1;
	before = __atomic_load_n(&e->begun, __ATOMIC_SEQ_CST);
	if (munmap(at, (size_t)page) != 0)
		return errno;
	for (n = before; n < __atomic_load_n(&e->done, __ATOMIC_SEQ_CST) && n - before < WEFT_EVENTS_SLOTS; n++) {
		uint64_t a = __atomic_load_n(&e->slot[n % WEFT_EVENTS_SLOTS].address, __ATOMIC_SEQ_CST);
		uint64_t b = __atomic_load_n(&e->slot[n % WEFT_EVENTS_SLOTS].bytes, __ATOMIC_SEQ_CST);
		if (a <= (uint64_t)(uintptr_t)at && (uint64_t)(uintptr_t)at < a + b) {
			__atomic_store_n(&e->proven, 1, __ATOMIC_SEQ_CST);
			return 0;
		}
	}
	return EPROTO;
}

#endif

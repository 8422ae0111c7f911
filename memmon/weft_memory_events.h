/*
 * Tells Weft, in the same process, of memory that goes away. For C and C++ libraries that hear of that: those that wrap or patch
 * munmap and its like, allocators, and programs that unmap what they have given to Weft.
 *
 *	weft_events_open();            once, at start: finds the page of events of this process, or makes it. 0, or an errno (ENOSPC: something
 *	                               else lies at each place where it may lie, as the pages of its ancestors do in a child of the
 *	                               fifth generation that forked and executed no program)
 *	weft_events_post(addr, bytes); each time, BEFORE the memory goes (munmap, mremap away or smaller, mmap with MAP_FIXED
 *	                               over it, madvise DONTNEED FREE REMOVE GUARD_INSTALL, brk down, shmdt), and if you can once more
 *	                               AFTER it has gone: what another thread has registered in between is of the old pages
 *	weft_events_prove();           after the hooks are in place: has pages go through them in each way, and notes which were posted. 0, or
 *	                               an errno (EPROTO: not even munmap was). Weft takes the word of hooks in C only for what this
 *	                               has seen, or what a probe of its own has (memmon.MailboxConfig): hooks that were there may have
 *	                               been destroyed by others
 *	weft_events_subscribe(f, arg); has f(addr, bytes, arg) called by each post, in its place and before the memory goes: for libraries
 *	                               that keep registrations of their own, to tell them what Weft is told (ucm_vm_munmap of UCX, the
 *	                               notify that libfabric's import gives). For the life of the process; 0, or an errno. It hears what is
 *	                               posted from C; memmon.Arbiter.Export tells what Go takes away
 *
 * weft_events_post may be called by any thread, in any place: inside of malloc and free, in a signal handler, while another post is
 * interrupted. It takes no lock, allocates nothing, and calls nothing but, when Weft watches memory near by, fstat(2) and write(2) of an event
 * descriptor that does not block, and those who have subscribed, of whom the same is asked: they must not take memory away
 * through hooks that post, nor end in a post of what they are told (who posts what UCX tells must not have UCX told). errno is kept.
 * Before weft_events_open, and in the child of a fork, it does nothing (in one of _Fork or clone, which call no handlers, it posts to the parent;
 * if such a child is killed while it posts, a slot of the parent's page stays taken).
 *
 * Weft's event descriptor is for the life of the process. A program that closes descriptors which are not its own (close_range, closefrom, a
 * daemon's loop) ends the waking: what is registered of dead memory is then given back at its next use. If the program gets the number again for an
 * event descriptor of its own, that one is rung; files, pipes and sockets are left alone.
 *
 * weft_events_prove moves the end of the data segment up and down: meanwhile no other thread may call malloc or sbrk.
 *
 * It is one header: each library that includes it, in as many of its files as it likes, has its own pointer to the one page of the process. Linux, GCC or
 * Clang, C99 or C++, with _GNU_SOURCE.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_MAYMOVE
#error "define _GNU_SOURCE before the first #include, which weft_memory_events.h is not"
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define WEFT_EVENTS_NAME "weft-memory-events"
#define WEFT_EVENTS_MAGIC UINT64_C(0x53544e5645544657)
#define WEFT_EVENTS_VERSION 1
#define WEFT_EVENTS_SLOTS 1024
#define WEFT_EVENTS_WRITING (UINT64_C(1) << 63)
#define WEFT_EVENTS_GRANULES 512
#define WEFT_EVENTS_SUBSCRIBERS 4

/* What was proven: bits of memmon.Event. */
#define WEFT_EVENTS_UNMAP 0
#define WEFT_EVENTS_MAPOVER 1
#define WEFT_EVENTS_MOVEAWAY 2
#define WEFT_EVENTS_DONTNEED 3
#define WEFT_EVENTS_FREE 4
#define WEFT_EVENTS_BREAK 6
#define WEFT_EVENTS_GRANULE 21 /* 2 MiB */

struct weft_events_slot {
	uint64_t address, bytes;
	uint64_t turn; /* 1 + the number of the event, with WEFT_EVENTS_WRITING while that is being written */
	uint64_t unused;
};

struct weft_events {
	uint64_t magic, version, slots, process, wake, proven, unused0[2];
	uint64_t begun, lost, unused1[6];
	uint64_t done, unused2[7];
	struct {
		uint64_t tell, arg; /* tell is a function, 0: none, 1: being written */
	} subscriber[WEFT_EVENTS_SUBSCRIBERS];
	uint64_t wanted[WEFT_EVENTS_GRANULES], touched[WEFT_EVENTS_GRANULES];
	uint64_t unused3[2048 - 32 - 2 * WEFT_EVENTS_GRANULES];
	struct weft_events_slot slot[WEFT_EVENTS_SLOTS];
};

/* An array of -1 elements if the compiler lays it out in another way than Go reads it. */
typedef char weft_events_layout[offsetof(struct weft_events, done) == 128 && offsetof(struct weft_events, wanted) == 256 &&
				offsetof(struct weft_events, slot) == 16384 && sizeof(struct weft_events_slot) == 32 ? 1 : -1];

/* The page, for all files of this library: the linker makes one of what they define, and shows it to no other library. */
__attribute__((weak, visibility("hidden"))) struct weft_events *weft_events_page;

static void weft_events_in_child(void)
{
	weft_events_page = NULL;
}

/*
 * Whether a mapping that begins at an address is a page of events: 1 or 0, or -1 and errno if that cannot be told (no /proc, no
 * descriptor left). Then it may be, and a second page would be one that nobody reads.
 */
static int weft_events_named(uintptr_t at)
{
	char line[512];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	if (!f)
		return -1;
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
	struct rlimit most;
	size_t i;
	int fd, named, err = ENOSPC;
	if (weft_events_page)
		return 0;
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < sizeof(struct weft_events))
		return EFBIG; /* to try would be a signal (SIGXFSZ) that ends the process */
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
		} else if (got == MAP_FAILED && errno != EEXIST) {
			continue;
		} else {
			if (got != MAP_FAILED) /* a kernel before 4.17 does not know the flag: the address was a hint, and something lies there */
				munmap(got, sizeof *e);
			if ((named = weft_events_named((uintptr_t)at)) < 0) {
				err = errno;
				break;
			}
			if (!named || !weft_events_usable(e))
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

typedef void (*weft_events_tell)(const void *address, size_t bytes, void *arg);

static inline int weft_events_subscribe(weft_events_tell tell, void *arg)
{
	struct weft_events *e = weft_events_page;
	int i;
	if (!e || !tell)
		return EINVAL;
	for (i = 0; i < WEFT_EVENTS_SUBSCRIBERS; i++) {
		uint64_t none = 0;
		if (!__atomic_compare_exchange_n(&e->subscriber[i].tell, &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		__atomic_store_n(&e->subscriber[i].arg, (uint64_t)(uintptr_t)arg, __ATOMIC_SEQ_CST);
		__atomic_store_n(&e->subscriber[i].tell, (uint64_t)(uintptr_t)tell, __ATOMIC_SEQ_CST);
		return 0;
	}
	return ENOSPC;
}

static void weft_events_publish(struct weft_events *e, const void *address, size_t bytes)
{
	int i;
	for (i = 0; i < WEFT_EVENTS_SUBSCRIBERS; i++) {
		uint64_t tell = __atomic_load_n(&e->subscriber[i].tell, __ATOMIC_ACQUIRE);
		if (tell > 1)
			((weft_events_tell)(uintptr_t)tell)(address, bytes, (void *)(uintptr_t)__atomic_load_n(&e->subscriber[i].arg, __ATOMIC_RELAXED));
	}
}

/* Counts a granule of an event, and says whether Weft watches memory in it. */
static inline int weft_events_count(struct weft_events *e, uint64_t number)
{
	__atomic_fetch_add(&e->touched[number], 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&e->wanted[number], __ATOMIC_RELAXED) != 0;
}

static inline int weft_events_touch(struct weft_events *e, uint64_t from, size_t bytes)
{
	uint64_t most = UINT64_MAX - from, more = bytes - 1 < most ? bytes - 1 : most;
	uint64_t g = from >> WEFT_EVENTS_GRANULE, last = (from + more) >> WEFT_EVENTS_GRANULE;
	int watched = 0;
	if (last - g >= WEFT_EVENTS_GRANULES) {
		for (g = 0; g < WEFT_EVENTS_GRANULES; g++)
			watched |= weft_events_count(e, g);
		return watched;
	}
	for (; g <= last; g++)
		watched |= weft_events_count(e, g * UINT64_C(0x9e3779b97f4a7c15) >> 55);
	return watched;
}

/*
 * Wakes Weft, so that it may clean up. The descriptor is only a number, and who closes all that he finds may get it for a file of his own: so it is
 * looked at first. Event descriptors are of no type of file.
 */
static inline void weft_events_wake(struct weft_events *e)
{
	uint64_t wake = __atomic_load_n(&e->wake, __ATOMIC_RELAXED), one = 1;
	struct stat is;
	if (!wake || fstat((int)(wake - 1), &is) != 0 || (is.st_mode & S_IFMT) != 0)
		return;
	if (syscall(SYS_write, (int)(wake - 1), &one, sizeof one) < 0) { /* full: it is rung */
	}
}

/* Takes the slot of event n and fills it; 0: somebody is writing there, or has been faster by a lap. */
static inline int weft_events_write(struct weft_events *e, uint64_t n, const void *address, size_t bytes)
{
	struct weft_events_slot *s = &e->slot[n % WEFT_EVENTS_SLOTS];
	uint64_t was = __atomic_load_n(&s->turn, __ATOMIC_SEQ_CST);
	if (was & WEFT_EVENTS_WRITING || was > n ||
	    !__atomic_compare_exchange_n(&s->turn, &was, (n + 1) | WEFT_EVENTS_WRITING, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	__atomic_store_n(&s->address, (uint64_t)(uintptr_t)address, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->bytes, (uint64_t)bytes, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->turn, n + 1, __ATOMIC_SEQ_CST);
	return 1;
}

static inline void weft_events_post(const void *address, size_t bytes)
{
	struct weft_events *e = weft_events_page;
	int kept = errno, told, watched;
	uint64_t n;
	if (!e || !bytes)
		return;
	n = __atomic_fetch_add(&e->begun, 1, __ATOMIC_SEQ_CST);
	watched = weft_events_touch(e, (uint64_t)(uintptr_t)address, bytes); /* before it is told or lost */
	told = weft_events_write(e, n, address, bytes) && __atomic_load_n(&e->begun, __ATOMIC_SEQ_CST) - n <= WEFT_EVENTS_SLOTS;
	if (!told)
		__atomic_fetch_add(&e->lost, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&e->done, 1, __ATOMIC_SEQ_CST);
	if (watched || !told)
		weft_events_wake(e);
	weft_events_publish(e, address, bytes);
	errno = kept;
}

/* Whether a page was posted by one of the events from a number on. */
static inline int weft_events_posted(struct weft_events *e, uint64_t from, const void *page)
{
	uint64_t n, at = (uint64_t)(uintptr_t)page;
	for (n = from; n < __atomic_load_n(&e->begun, __ATOMIC_SEQ_CST) && n - from < WEFT_EVENTS_SLOTS; n++) {
		struct weft_events_slot *s = &e->slot[n % WEFT_EVENTS_SLOTS];
		uint64_t turn = __atomic_load_n(&s->turn, __ATOMIC_SEQ_CST);
		uint64_t a = __atomic_load_n(&s->address, __ATOMIC_SEQ_CST);
		uint64_t b = __atomic_load_n(&s->bytes, __ATOMIC_SEQ_CST);
		if (turn == n + 1 && __atomic_load_n(&s->turn, __ATOMIC_SEQ_CST) == n + 1 && a <= at && at - a < b)
			return 1;
	}
	return 0;
}

/* Has a page go in one way, which is called; 1: it was posted, 0: not, or it did not go. */
static inline int weft_events_try(struct weft_events *e, int event)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int prot = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS, posted;
	uint64_t before;
	char *at;
	void *to;
	if (event == WEFT_EVENTS_BREAK) {
		at = (char *)sbrk((intptr_t)page);
		before = __atomic_load_n(&e->begun, __ATOMIC_SEQ_CST);
		if (at == (char *)-1 || (char *)sbrk(0) != at + page || sbrk(-(intptr_t)page) == (void *)-1)
			return 0;
		return weft_events_posted(e, before, at + page - 1);
	}
	at = (char *)mmap(NULL, 2 * page, prot, anonymous, -1, 0);
	if ((void *)at == MAP_FAILED)
		return 0;
	*(volatile char *)at = 1;
	to = at;
	before = __atomic_load_n(&e->begun, __ATOMIC_SEQ_CST);
	switch (event) {
	case WEFT_EVENTS_UNMAP:
		to = munmap(at, 2 * page) == 0 ? NULL : MAP_FAILED;
		break;
	case WEFT_EVENTS_MAPOVER:
		to = mmap(at, page, prot, anonymous | MAP_FIXED, -1, 0);
		break;
	case WEFT_EVENTS_MOVEAWAY: /* behind it is its other page, so it has to move */
		to = mremap(at, page, 2 * page, MREMAP_MAYMOVE);
		break;
	case WEFT_EVENTS_DONTNEED:
	case WEFT_EVENTS_FREE:
		to = madvise(at, page, event == WEFT_EVENTS_FREE ? MADV_FREE : MADV_DONTNEED) == 0 ? at : MAP_FAILED;
		break;
	}
	posted = to != MAP_FAILED && weft_events_posted(e, before, at);
	if (event == WEFT_EVENTS_MOVEAWAY && to != MAP_FAILED) {
		munmap(to, 2 * page);
		munmap(at + page, page);
	} else if (event != WEFT_EVENTS_UNMAP) {
		munmap(at, 2 * page);
	}
	return posted;
}

static inline int weft_events_prove(void)
{
	static const int all[] = {WEFT_EVENTS_UNMAP, WEFT_EVENTS_MAPOVER, WEFT_EVENTS_MOVEAWAY, WEFT_EVENTS_DONTNEED, WEFT_EVENTS_FREE, WEFT_EVENTS_BREAK};
	struct weft_events *e = weft_events_page;
	uint64_t proven = 0;
	size_t i;
	if (!e)
		return EINVAL;
	for (i = 0; i < 8 * (sizeof all / sizeof *all); i++) /* again: one is lost if others post more than can be remembered */
		if (!(proven >> all[i / 8] & 1) && weft_events_try(e, all[i / 8]))
			proven |= UINT64_C(1) << all[i / 8];
	__atomic_store_n(&e->proven, proven, __ATOMIC_SEQ_CST);
	return proven >> WEFT_EVENTS_UNMAP & 1 ? 0 : EPROTO;
}

#endif

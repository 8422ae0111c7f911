// A library that patches munmap and madvise of the C library where it is loaded, as Open MPI's and libfabric's memory hooks do: the first bytes
// become a jump to a function of its own, which notes the call and makes it by itself. With POST it patches all by which memory goes, and tells Weft.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef POST
#include "weft_memory_events.h"
#define post weft_events_post
#else
#define post(addr, n) ((void)0)
#endif

volatile unsigned long patcher_calls;

int patcher_munmap(void *addr, size_t n)
{
	__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
	post(addr, n);
	return (int)syscall(SYS_munmap, addr, n);
}

int patcher_madvise(void *addr, size_t n, int advice)
{
	__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
	if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)
		post(addr, n);
	return (int)syscall(SYS_madvise, addr, n, advice);
}

static void patch(void *function, void *to)
{
	uint64_t t = (uint64_t)to;
#if defined(__x86_64__)
	unsigned char jump[13] = {0x49, 0xbb, [10] = 0x41, 0xff, 0xe3}; // mov r11, to; jmp r11
	memcpy(jump + 2, &t, 8);
#elif defined(__aarch64__)
	uint32_t jump[5] = { // movz x15, movk x15 three times, br x15
		0xd2e0000f | (uint32_t)(t >> 48 & 0xffff) << 5, 0xf2c0000f | (uint32_t)(t >> 32 & 0xffff) << 5,
		0xf2a0000f | (uint32_t)(t >> 16 & 0xffff) << 5, 0xf280000f | (uint32_t)(t & 0xffff) << 5, 0xd61f01e0,
	};
#endif
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)function & ~(page - 1);
	mprotect((void *)at, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(function, jump, sizeof jump);
	__builtin___clear_cache((char *)function, (char *)function + sizeof jump);
	mprotect((void *)at, 2 * page, PROT_READ | PROT_EXEC);
}

#ifdef POST // everything by which memory goes, and Weft is told

#include <errno.h>
#include <stdarg.h>
#include <sys/shm.h>

extern void *__curbrk; // the C library's, of its brk

void *patcher_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED) {
		__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
		post(addr, n);
	}
	return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd, offset);
}

void *patcher_mremap(void *addr, size_t n, size_t now, int flags, ...)
{
	va_list args;
	void *to = NULL;
	va_start(args, flags);
	if (flags & MREMAP_FIXED)
		to = va_arg(args, void *);
	va_end(args);
	__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
	post(addr, n);
	if (to)
		post(to, now);
	return (void *)syscall(SYS_mremap, addr, n, now, flags, to);
}

int patcher_brk(void *end)
{
	char *before = __curbrk, *now;
	if (end && (char *)end < before) {
		__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
		post(end, (size_t)(before - (char *)end));
	}
	now = (char *)syscall(SYS_brk, end);
	__curbrk = now;
	if (now < (char *)end) {
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

int patcher_shmdt(const void *addr)
{
	__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
	post(addr, SIZE_MAX - (size_t)addr); // it does not say how much; what lies behind suffers
	return (int)syscall(SYS_shmdt, addr);
}

void *patcher_shmat(int id, const void *addr, int flags)
{
	if (flags & SHM_REMAP) {
		__atomic_fetch_add(&patcher_calls, 1, __ATOMIC_SEQ_CST);
		post(addr, SIZE_MAX - (size_t)addr);
	}
	return (void *)syscall(SYS_shmat, id, addr, flags);
}

static void patch_all(void)
{
	patch((void *)mmap, (void *)patcher_mmap);
	patch((void *)mremap, (void *)patcher_mremap);
	patch((void *)brk, (void *)patcher_brk);
	patch((void *)shmdt, (void *)patcher_shmdt);
	patch((void *)shmat, (void *)patcher_shmat);
	if (weft_events_open() == 0)
		(void)weft_events_prove(); // if it fails, Weft does not take the word of these hooks
}

#endif

__attribute__((constructor)) static void begin(void)
{
	patch((void *)munmap, (void *)patcher_munmap);
	patch((void *)madvise, (void *)patcher_madvise);
#ifdef POST
	patch_all();
#endif
}

// A library that patches munmap and madvise of the C library where it is loaded, as Open MPI's and libfabric's memory hooks do: the first bytes
// become a jump to a function of its own, which notes the call and makes it by itself.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile unsigned long patcher_calls;

int patcher_munmap(void *addr, size_t n)
{
	patcher_calls++;
	return (int)syscall(SYS_munmap, addr, n);
}

int patcher_madvise(void *addr, size_t n, int advice)
{
	patcher_calls++;
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

__attribute__((constructor)) static void begin(void)
{
	patch((void *)munmap, (void *)patcher_munmap);
	patch((void *)madvise, (void *)patcher_madvise);
}

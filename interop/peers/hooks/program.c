// A program that uses the memory functions, and stays until its input ends. With OWN it defines munmap by itself; with ADDRESS it is
// linked so that the address of munmap is one of its own.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef OWN
int munmap(void *addr, size_t n) { return (int)syscall(SYS_munmap, addr, n); }
#endif

int main(int argc, char **argv)
{
	(void)argv;
#ifdef ADDRESS
	int (*volatile gone)(void *, size_t) = munmap;
#else
#define gone munmap
#endif
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc < 2) // else munmap is not looked up yet
		gone(p, 4096);
	puts("READY");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return argc < 2 ? 0 : gone(p, 4096);
}

// A library on a kernel before 4.17, which takes MAP_FIXED_NOREPLACE for a hint. It opens the page where another one has. It ends with 1 if it got
// a page of its own.
#include <sys/mman.h>

static void *hinted(void *at, size_t n, int prot, int flags, int fd, long off)
{
	return mmap(at, n, prot, flags & ~0x100000, fd, off);
}
#define mmap hinted
#include "weft_memory_events.h"

int main(void)
{
	struct weft_events *first;
	if (weft_events_open() != 0)
		return 2;
	first = weft_events_page;
	weft_events_page = NULL; // as the second library begins
	if (weft_events_open() != 0)
		return 3;
	return weft_events_page == first ? 0 : 1;
}

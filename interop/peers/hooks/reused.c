// A process in which somebody closes the descriptor that wakes Weft, and gets its number for a pipe. It ends with 1 if a post writes there, and with 2 if
// a post does not wake while the descriptor is one.
#include "weft_memory_events.h"
#include <fcntl.h>
#include <sys/eventfd.h>

int main(void)
{
	int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ends[2];
	char *at = (char *)4096;
	uint64_t n;
	if (wake < 0 || weft_events_open() != 0)
		return 3;
	weft_events_page->wake = (uint64_t)wake + 1;
	memset(weft_events_page->wanted, 1, sizeof weft_events_page->wanted);
	weft_events_post(at, 4096);
	if (read(wake, &n, sizeof n) != sizeof n)
		return 2;
	if (pipe2(ends, O_NONBLOCK) != 0 || dup2(ends[1], wake) != wake)
		return 4;
	weft_events_post(at, 4096);
	close(wake);
	weft_events_post(at, 4096);
	return read(ends[0], &n, sizeof n) > 0 ? 1 : 0;
}

// A library that opens the page of events while the list of mappings cannot be read, since the process has only one descriptor left: the one
// for the new page. It ends with 1 if it got a page of its own, beside that of the first library.
#include "weft_memory_events.h"
#include <fcntl.h>
#include <sys/resource.h>

int main(void)
{
	struct weft_events *first;
	struct rlimit few;
	int last, err = weft_events_open();
	if (err)
		return 2;
	first = weft_events_page;
	weft_events_page = NULL; // as the second library begins
	last = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (last < 0 || getrlimit(RLIMIT_NOFILE, &few) != 0)
		return 3;
	few.rlim_cur = (rlim_t)last + 1;
	close(last);
	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		return 4;
	err = weft_events_open();
	if (err != EMFILE && weft_events_page != first)
		return 1;
	few.rlim_cur = (rlim_t)last + 2;
	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		return 5;
	return weft_events_open() == 0 && weft_events_page == first ? 0 : 6;
}

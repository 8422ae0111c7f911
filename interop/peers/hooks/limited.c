// A process that may make no file as large as the page. It ends with 1 if it is not told so.
#include "weft_memory_events.h"

int main(void)
{
	struct rlimit most = {1024, 1024};
	if (setrlimit(RLIMIT_FSIZE, &most) != 0)
		return 2;
	return weft_events_open() == EFBIG && weft_events_page == NULL ? 0 : 1;
}

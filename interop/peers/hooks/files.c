// A program of two files that include the header. It opens the page in this one, and posts in the other one (post.c). It ends with 1 if the post
// was not of the page.
#include "weft_memory_events.h"

void post(const void *address, size_t bytes);

int main(void)
{
	if (weft_events_open() != 0)
		return 2;
	post((void *)4096, 4096);
	return weft_events_page->begun == 1 && weft_events_page->done == 1 ? 0 : 1;
}

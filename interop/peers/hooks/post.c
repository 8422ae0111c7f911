// The other file of a library: it posts, and another one (files.c) has opened the page.
#include "weft_memory_events.h"

void post(const void *address, size_t bytes)
{
	weft_events_post(address, bytes);
}

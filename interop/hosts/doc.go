// Package hosts is for programs that have Weft and another middleware with memory hooks in one process. It plays what can happen to
// registered memory, through the C library, and reports what a card sends that has the pages that were registered. The programs stand in folders
// below; they hold C, and are built with the tag peers.
package hosts

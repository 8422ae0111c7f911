//go:build race

package sys

// raced says that the race detector is on, with which calls of package unix allocate.
const raced = true

//go:build race

package shmem

import (
	"runtime"
	"unsafe"
)

// The race detector does not see atomics in memory that Go did not allocate: without a hint it reports false
// races on whatever is handed over through a ring. One word stands for all rings, so it may miss a race between users of two
// rings, but reports none that is not.
var handOver byte

// raceRelease tells it that what this goroutine did until now is handed over.
func raceRelease() { runtime.RaceReleaseMerge(unsafe.Pointer(&handOver)) }

// raceAcquire tells it that this goroutine has taken over what was handed over.
func raceAcquire() { runtime.RaceAcquire(unsafe.Pointer(&handOver)) }

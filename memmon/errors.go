package memmon

import "errors"

var (
	// ErrNotHeap refuses memory as HeapBytes that is not of the Go heap.
	ErrNotHeap = errors.New("memmon: not memory of the Go heap")
	// ErrUnanswered says that nobody can tell whether the memory stays what it is: it must not be cached.
	ErrUnanswered = errors.New("memmon: nobody answers for this memory")
	// ErrDevice refuses memory of a device that is mapped, a GPU's say: Weft does not know how such memory is registered or copied. Who
	// owns it can say so (Mapped with an Owner); then it is the driver's to take it or not.
	ErrDevice = errors.New("memmon: memory of a device is not supported")
	// ErrInUse refuses another monitor, or the end: it is too late, caches are attached.
	ErrInUse = errors.New("memmon: caches are attached")
	// ErrImported refuses a second monitor.
	ErrImported = errors.New("memmon: a monitor was imported already")
	// ErrMonitor is a monitor that does not work here, or does not see what it has to.
	ErrMonitor = errors.New("memmon: monitor does not work")
)

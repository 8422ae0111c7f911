//go:build linux

package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RobustOwner holds words in shared memory that the kernel marks, and whose waiters it wakes, when this process
// dies: before it frees the process's memory and closes its sockets, which takes 80 ms for each GiB. It takes one
// thread, which sleeps, since the kernel does it for threads. Its methods are safe for concurrent use.
//
// A peer sleeps by FutexWait, or FutexWaitAny for many, while a word has the value that it saw, in a mapping that may
// be read-only. The kernel wakes one sleeper of a word only: who finds OwnerDied calls FutexWake for the others, or each
// has a word of its own.
//
// The mark says that this one thread has ended, which a thread of Go's does with its process only. The kernel stops the
// threads of a process that is killed one by one: others may run, and write memory, for some microseconds after it.
type RobustOwner struct {
	words   []*atomic.Uint32
	shadow  []byte // the kernel's list: private memory, so that no address stands in the shared one
	head    *robustHead
	work    func()
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

// robustHead is struct robust_list_head. An entry of the list is the address of the next one; the last has that of
// the head. The word of an entry lies offset bytes behind it.
type robustHead struct {
	next    uintptr
	offset  int // a long of C: as wide as int on Linux
	pending uintptr
}

// robustMost is how many entries of a list the kernel looks at (ROBUST_LIST_LIMIT).
const robustMost = 2048

// errRobustBusy is a thread whose list is in use.
var errRobustBusy = errors.New("sys: robust words: the thread holds robust mutexes of C code")

// NewRobustOwner owns the words of 32 bits at the offsets, different multiples of 8, in a writable mapping, which
// must stay until Close. The thread runs work meanwhile, if it is not nil: who closes has it return first. It needs
// RobustList.
//
// A thread has one list, and C's library gives each thread one for the robust mutexes of C code. The thread here runs no C
// code as long as the words are owned, so that list lies idle: it is put back by Close, and a thread in whose list there is something
// is not used.
func NewRobustOwner(m *Mapping, offsets []int, work func(), f Features) (*RobustOwner, error) {
	if err := f.Check(RobustList); err != nil {
		return nil, err
	}
	if !m.Writable() || len(offsets) == 0 || len(offsets) > robustMost {
		return nil, fmt.Errorf("sys: robust words: %d in memory that is writable: %v", len(offsets), m.Writable())
	}
	memory := m.Bytes()
	o := &RobustOwner{work: work, stop: make(chan struct{}), stopped: make(chan struct{})}
	seen, end := make(map[int]bool), 0
	for _, off := range offsets {
		if off < 0 || off%8 != 0 || off > len(memory)-8 || seen[off] {
			return nil, fmt.Errorf("sys: robust word at %d of %d bytes", off, len(memory))
		}
		seen[off], end = true, max(end, off+8)
		o.words = append(o.words, word32(memory[off:]))
	}
	// An entry lies where its word lies, counted from the start: so the distance is the same for all.
	headAt := (end + 63) &^ 63
	shadow, err := unix.Mmap(-1, 0, headAt+64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	o.shadow = shadow
	o.head = (*robustHead)(unsafe.Pointer(unsafe.SliceData(shadow[headAt:])))
	o.head.offset = int(Address(memory) - Address(shadow))
	last := &o.head.next
	for _, off := range offsets {
		entry := (*uintptr)(unsafe.Pointer(unsafe.SliceData(shadow[off:])))
		*last = uintptr(unsafe.Pointer(entry))
		last = entry
	}
	*last = uintptr(unsafe.Pointer(o.head))

	ready := make(chan error)
	go o.hold(ready)
	if err := <-ready; err != nil {
		<-o.stopped
		return nil, errors.Join(err, unix.Munmap(shadow))
	}
	return o, nil
}

// idle says whether there is nothing in a list.
func (h *robustHead) idle() bool {
	return h == nil || h.pending == 0 && (h.next == 0 || h.next == uintptr(unsafe.Pointer(h)))
}

// hold is the life of the thread.
func (o *RobustOwner) hold(ready chan<- error) {
	defer close(o.stopped)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before *robustHead // of C
	var size uintptr
	_, _, errno := unix.Syscall(unix.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&before)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		ready <- os.NewSyscallError("get_robust_list", errno)
		return
	}
	if !before.idle() {
		ready <- errRobustBusy
		return
	}
	tid := uint32(unix.Gettid())
	for _, w := range o.words {
		w.Store(tid | OwnerWaits)
	}
	_, _, errno = unix.Syscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(o.head)), unsafe.Sizeof(*o.head), 0)
	if errno != 0 {
		for _, w := range o.words {
			w.Store(0)
		}
		ready <- os.NewSyscallError("set_robust_list", errno)
		return
	}
	ready <- nil
	if o.work != nil {
		o.work()
	}
	<-o.stop
	// In this order: a death in between marks nothing, since the words are nobody's.
	for _, w := range o.words {
		w.Store(0)
	}
	_, _, _ = unix.Syscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(before)), unsafe.Sizeof(*o.head), 0)
	for _, w := range o.words {
		_, _ = FutexWake(w, 1<<30)
	}
}

// Close gives the words up, sets them to 0 and wakes who sleeps on them. The thread is the runtime's again. Again,
// it does nothing.
func (o *RobustOwner) Close() error {
	var err error
	o.once.Do(func() {
		close(o.stop)
		<-o.stopped
		err = os.NewSyscallError("munmap", unix.Munmap(o.shadow))
	})
	return err
}

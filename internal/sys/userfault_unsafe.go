//go:build linux && (amd64 || arm64)

package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// userfaultfd(2), as of linux/userfaultfd.h.
const (
	uffdUserModeOnly = 1 // UFFD_USER_MODE_ONLY: no faults of the kernel are asked for, so that ordinary users may (5.11)
	uffdAPI          = 0xaa

	uffdFeatureWP     = 1 << 0 // UFFD_FEATURE_PAGEFAULT_FLAG_WP (5.7; on arm64 6.10)
	uffdFeatureRemap  = 1 << 2 // UFFD_FEATURE_EVENT_REMAP
	uffdFeatureRemove = 1 << 3 // UFFD_FEATURE_EVENT_REMOVE
	uffdFeatureUnmap  = 1 << 6 // UFFD_FEATURE_EVENT_UNMAP

	uffdioAPI          = 0xc018aa3f
	uffdioRegister     = 0xc020aa00
	uffdioUnregister   = 0x8010aa01
	uffdioWriteprotect = 0xc018aa06

	uffdRegisterWP = 1 << 1 // UFFDIO_REGISTER_MODE_WP: no page of the range is protected, so there are no faults
)

// EventWords are where a Userfault writes what it hears, one line for each event: it adds one to Begun, writes the slot of that number, and adds one
// to Done. They are written behind the back of the garbage collector, and stay in place until Close.
type EventWords struct {
	Begun, Done *uint64
	Slots       []uint64 // two words for each: address and bytes. Their number is a power of two
	Wake        Eventfd  // rung after each
}

// userfaultControls are those that threads work with, which the collector does not see.
var userfaultControls sync.Map

// userfaultControl is what the thread works with. The assembly knows the offsets.
type userfaultControl struct {
	fd, stop   int32          // 0, 4: the userfaultfd; an eventfd that ends the thread
	begun      unsafe.Pointer // 8
	done       unsafe.Pointer // 16
	slots      unsafe.Pointer // 24
	mask       uint64         // 32: slots - 1
	wake, _    int32          // 40
	thread     uint32         // 48: its number; the kernel makes it zero when the thread has ended
	alive      uint32         // 52
	errno      uint32         // 56: why it has ended; 0: it was told to
	_          uint32
	poll       [2]unix.PollFd // 64
	_          [16]byte       // 80
	message    [32]byte       // 96: struct uffd_msg
	one        uint64         // 128
	_          [24]byte       // 136
	all, saved uint64         // 160, 168: signals
	name       [16]byte       // 176
	_          [4096]byte     // what clone wants as a stack ends in here; nothing is put there
}

// controlOffsets says where the words lie, for the test that the assembly is right.
func controlOffsets() map[string]uintptr {
	var c userfaultControl
	return map[string]uintptr{
		"stop": unsafe.Offsetof(c.stop), "begun": unsafe.Offsetof(c.begun), "done": unsafe.Offsetof(c.done), "slots": unsafe.Offsetof(c.slots),
		"mask": unsafe.Offsetof(c.mask), "wake": unsafe.Offsetof(c.wake), "thread": unsafe.Offsetof(c.thread), "alive": unsafe.Offsetof(c.alive),
		"errno": unsafe.Offsetof(c.errno), "poll": unsafe.Offsetof(c.poll), "message": unsafe.Offsetof(c.message), "one": unsafe.Offsetof(c.one),
		"all": unsafe.Offsetof(c.all), "saved": unsafe.Offsetof(c.saved), "name": unsafe.Offsetof(c.name),
	}
}

// Userfault tells when memory goes away that it watches: private anonymous memory. Who unmaps or drops pages of a watched range sleeps in the kernel
// until the event is read, so that is done by a thread that needs nothing but the kernel: it never runs Go, takes no lock and no memory, and
// does not wait for a processor of Go's, which whoever unmaps may hold.
//
// Its methods are safe for concurrent use, but Close with the others; Err may be asked at any time, also after it.
type Userfault struct {
	fd, stop *FD
	control  *userfaultControl // of the heap, so that Err may be asked for ever
	words    EventWords        // kept alive
}

// NewUserfault starts one.
func NewUserfault(w EventWords) (*Userfault, error) {
	if n := len(w.Slots); n < 2 || n&(n-1) != 0 {
		return nil, os.NewSyscallError("userfaultfd", unix.EINVAL)
	}
	fd, err := openUserfault()
	if err != nil {
		return nil, err
	}
	u := &Userfault{fd: fd, control: new(userfaultControl), words: w}
	if err := u.start(); err != nil {
		u.free()
		return nil, err
	}
	return u, nil
}

// CanUserfault says why this process cannot have one; nil: it can.
func CanUserfault() error {
	fd, err := openUserfault()
	if err != nil {
		return err
	}
	return fd.Close()
}

// openUserfault opens a userfaultfd that tells of what goes away.
func openUserfault() (*FD, error) {
	n, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("userfaultfd", errno)
	}
	fd := NewFD(int(n), "userfaultfd")
	api := [3]uint64{uffdAPI, uffdFeatureWP | uffdFeatureRemap | uffdFeatureRemove | uffdFeatureUnmap}
	if err := uffdCall(fd.Int(), uffdioAPI, unsafe.Pointer(&api)); err != nil {
		_ = fd.Close()
		return nil, fmt.Errorf("userfaultfd with write protection and events of unmapping: %w", err)
	}
	if err := replaced(fd); err != nil {
		_ = fd.Close()
		return nil, err
	}
	return fd, nil
}

// replaced puts a copy in the place of another one, as the thread does when it ends: who waits for its reading would wait for ever if a filter of
// system calls refused that.
func replaced(fd *FD) error {
	n, err := unix.FcntlInt(uintptr(fd.Int()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	defer unix.Close(n)
	return os.NewSyscallError("dup3", unix.Dup3(fd.Int(), n, unix.O_CLOEXEC))
}

func uffdCall(fd int, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
		return os.NewSyscallError("ioctl of userfaultfd", errno)
	}
	return nil
}

// startWatcher starts the thread.
//
//go:noescape
func startWatcher(control unsafe.Pointer) (thread int)

func (u *Userfault) start() (err error) {
	e, err := NewEventfd(Features{})
	if err != nil {
		return err
	}
	u.stop = e.FD
	c := u.control
	*c = userfaultControl{
		fd: int32(u.fd.Int()), stop: int32(u.stop.Int()), wake: int32(u.words.Wake.Int()),
		begun: unsafe.Pointer(u.words.Begun), done: unsafe.Pointer(u.words.Done),
		slots: unsafe.Pointer(unsafe.SliceData(u.words.Slots)), mask: uint64(len(u.words.Slots)/2 - 1),
		alive: 1, one: binary.NativeEndian.Uint64(one[:]), all: ^uint64(0),
	}
	c.poll = [2]unix.PollFd{{Fd: c.fd, Events: unix.POLLIN}, {Fd: c.stop, Events: unix.POLLIN}}
	copy(c.name[:], "weft-uffd")
	userfaultControls.Store(c, nil)
	if n := startWatcher(unsafe.Pointer(c)); n < 0 {
		userfaultControls.Delete(c)
		c.thread = 0
		return os.NewSyscallError("clone", unix.Errno(-n))
	}
	return nil
}

// Err is nil while the thread reads, and then says why it does not any more.
func (u *Userfault) Err() error {
	c := u.control
	if atomic.LoadUint32(&c.alive) != 0 {
		return nil
	}
	return os.NewSyscallError("the reader of userfaultfd has ended: read", unix.Errno(atomic.LoadUint32(&c.errno)))
}

// Watch begins to tell of n bytes from addr on, whole pages. What is watched already stays so.
func (u *Userfault) Watch(addr, n uint64) error {
	arg := [4]uint64{addr, n, uffdRegisterWP}
	return uffdCall(u.fd.Int(), uffdioRegister, unsafe.Pointer(&arg))
}

// Unwatch ends that. The memory may have become somebody else's: where another userfaultfd watches, Watch is refused; without asking that, all but
// the newest kernels end that one's watch.
func (u *Userfault) Unwatch(addr, n uint64) error {
	if err := u.Watch(addr, n); err != nil {
		return err
	}
	arg := [2]uint64{addr, n}
	return uffdCall(u.fd.Int(), uffdioUnregister, unsafe.Pointer(&arg))
}

// Watched asks the kernel whether all of the range is memory that Watch was called for. It cannot say while an event waits to be read: busy. It is not to be
// asked of memory that another userfaultfd may watch: it is true of that, and takes the protection of its pages away.
func (u *Userfault) Watched(addr, n uint64) (is, busy bool) {
	err := u.protect(addr, n, 0) // nothing: it only looks
	return err == nil, errors.Is(err, unix.EAGAIN)
}

func (u *Userfault) protect(addr, n, mode uint64) error {
	arg := [3]uint64{addr, n, mode}
	return uffdCall(u.fd.Int(), uffdioWriteprotect, unsafe.Pointer(&arg))
}

// End makes the thread end as if the kernel had failed it with an error, for tests of what happens then. It does not wait.
func (u *Userfault) End() error { return Eventfd{u.stop}.Ring() }

// letGo ends the watch of what is watched still: memory that was moved is so at its new place, and so are the rests of a range that could not be
// unwatched, since a file was mapped into it. The child of a fork that runs no other program has a copy of the descriptor, so that closing it
// would not let go of who gives such memory back: nobody would read his event, and he would wait for ever.
//
// Watched is not asked: it would take the protection of what another userfaultfd watches away.
func (u *Userfault) letGo() {
	list, err := guardedMappings()
	if err != nil {
		return // then there is mostly nothing to do
	}
	for _, m := range list {
		_ = u.Unwatch(m.Addr, m.Len)
	}
}

// Close ends all watches and the thread, and has waited for its end.
func (u *Userfault) Close() error {
	u.letGo()
	err := Eventfd{u.stop}.Ring()
	c := u.control
	for t := atomic.LoadUint32(&c.thread); t != 0; t = atomic.LoadUint32(&c.thread) {
		_ = FutexWait((*atomic.Uint32)(unsafe.Pointer(&c.thread)), t, 0)
	}
	userfaultControls.Delete(c)
	u.free()
	return err
}

func (u *Userfault) free() {
	_ = u.fd.Close()
	if u.stop != nil {
		_ = u.stop.Close()
	}
}

package doctor

import (
	"crypto/rand"
	"os"

	"github.com/weft-fabric/weft/internal/sys"
)

// needed tries what there is no fallback for.
func needed() []Check {
	_, boot := sys.BootID()
	_, net := sys.NetNamespace()
	list := []Check{
		tried("memory_files", "memory that can be shared and sealed", memoryFiles(), "a limit of file sizes that leaves room (ulimit -f), memory, a kernel from 4.18 on, and a filter of system calls that allows memfd_create"),
		tried("unix_sockets", "messages between processes of this node", unixSockets(), "a filter of system calls that allows sockets of the family AF_UNIX"),
		tried("epoll", "waits sleep in the kernel", poller(), "more descriptors (ulimit -n), or a filter of system calls that allows epoll"),
		tried("boot_id", "this kernel can be told from others", boot, "mount /proc, with /proc/sys/kernel/random/boot_id"),
		tried("net_identity", "this network namespace can be told from others", net, "mount /proc, with /proc/self/ns"),
	}
	for i := range list {
		list[i].Needed = true
	}
	return list
}

// memoryFiles makes one as peers get it.
func memoryFiles() error {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft doctor", Size: int64(os.Getpagesize())})
	if err != nil {
		return err
	}
	defer fd.Close()
	m, err := sys.Map(fd, 0, os.Getpagesize(), true)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := sys.Seal(fd, sys.SealShrink|sys.SealGrow|sys.SealSeal); err != nil {
		return err
	}
	if (sys.Features{}).Has(sys.FutureWrite) {
		return nil
	}
	ro, err := sys.ReadOnly(fd) // what is done instead
	if err != nil {
		return err
	}
	return ro.Close()
}

// unixSockets makes a pair, and meets itself at a name, as peers meet.
func unixSockets() error {
	a, b, err := sys.SocketPair(sys.SeqPacket)
	if err != nil {
		return err
	}
	_ = b.Close()
	_ = a.Close()
	at := sys.UnixAddress{Name: "weft-doctor-" + rand.Text(), Abstract: true}
	if a, err = sys.ListenUnix(at, sys.SeqPacket, 1); err != nil {
		return err
	}
	defer a.Close()
	if b, err = sys.ConnectUnix(at, sys.SeqPacket); err != nil {
		return err
	}
	return b.Close()
}

func poller() error {
	p, err := sys.NewPoller()
	if err != nil {
		return err
	}
	return p.Close()
}

// uses says what each feature is for, and what to do without it.
var uses = map[sys.Feature]struct{ is, remedy string }{
	sys.FutureWrite:   {"memory that only its owner writes", "a kernel from 5.1 on; without, other programs of this user could write memory that they should only read"},
	sys.NoExecSeal:    {"memory files that cannot be run", "a kernel from 6.3 on; it is a matter of care only"},
	sys.PopulatePages: {"new memory is touched in one call", "a kernel from 5.14 on; without, it is touched page by page"},
	sys.FutexWaitv:    {"deaths of peers are seen at once", "a kernel from 5.16 on; without, they are noticed after the memory of the dead was freed"},
	sys.HugeTLB:       {"memory files of huge pages", "a kernel with hugetlbfs; without, arenas lie on ordinary pages"},
	sys.CrossMemory:   {"registered memory of other processes is read by process_vm_readv", "a container with CAP_SYS_PTRACE or a filter that allows process_vm_readv; without, it is read by way of its owner"},
	sys.EventFD:       {"sleepers are woken by eventfd", "a filter of system calls that allows eventfd; without, they are woken by packets"},
	sys.RobustList:    {"peers are told of the death of this process at once", "a filter of system calls that allows set_robust_list; without, they are told after its memory was freed"},
}

// features asks the kernel for all that Weft uses if it is there.
func features() []Check {
	var list []Check
	for _, f := range sys.AllFeatures() {
		u, ok := uses[f]
		if !ok {
			u.remedy = "a newer kernel, or a filter of system calls that allows it"
		}
		list = append(list, tried(f.String(), u.is, sys.Features{}.Check(f), u.remedy))
	}
	return append(list,
		tried("userfaultfd", "private memory that is not of the Go heap can be watched", sys.CanUserfault(),
			"a kernel from 5.11 (arm64: 6.10) on with userfaultfd, and a filter of system calls that allows it, and dup3; only for memory that nothing else can answer for"),
		tried("io_uring", "memory can be pinned for the tests of Weft", sys.CanUring(), "sysctl kernel.io_uring_disabled=0, and a filter of system calls that allows it; Weft's own tests use it, nothing else does"),
	)
}

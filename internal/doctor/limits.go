package doctor

import (
	"fmt"
	"math"

	"github.com/weft-fabric/weft/internal/host"
	"github.com/weft-fabric/weft/internal/sys"
)

// What is little: below these, a check is limited.
const (
	littleMemlock = 64 << 20 // bytes: what a registration cache may well pin
	littleFiles   = 1024     // descriptors: 3 for each peer of a node
	littleRoom    = 1 << 30  // bytes
)

// limits says what bounds memory and descriptors.
func (r *Report) limits() []Check {
	h := &r.Host
	return []Check{
		memlock(h.Memlock, "ulimit -l unlimited (memlock in limits.conf, LimitMEMLOCK of the service): network devices and io_uring pin what is registered"),
		limit("file_size", h.File, 1<<63, size, "ulimit -f unlimited: memory that is shared counts as a file"),
		limit("open_files", h.Open, littleFiles, plain, "ulimit -n, up to its hard limit: a peer takes 3 descriptors"),
		memoryRoom(h.Cgroup, h.Free),
		hugeRoom(h.Huge),
		ptrace(h.Ptrace),
	}
}

func limit(name string, l *host.Limit, little uint64, text func(uint64) string, remedy string) Check {
	switch {
	case l == nil:
		return Check{Name: name, State: Limited, Found: "not known: /proc/self/limits cannot be read", Remedy: "mount /proc, and leave this process descriptors (ulimit -n)"}
	case l.Unlimited:
		return Check{Name: name, State: Works, Found: "no limit"}
	case l.Value < little:
		return Check{Name: name, State: Limited, Found: text(l.Value), Remedy: remedy}
	}
	return Check{Name: name, State: Works, Found: text(l.Value)}
}

// memlock is what drivers let this process pin. They ask whoever may lock memory for no limit.
func memlock(l *host.Limit, remedy string) Check {
	k := limit("memlock", l, littleMemlock, size, remedy)
	if n, err := sys.LockableMemory(); l != nil && k.State == Limited && err == nil && n == math.MaxUint64 {
		k.State, k.Remedy = Works, ""
		k.Found += ", but this process has CAP_IPC_LOCK, which goes without"
	}
	return k
}

func plain(n uint64) string { return fmt.Sprint(n) }

// size is a number of bytes.
func size(n uint64) string {
	v, unit := float64(n), 0
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	for v >= 1000 && unit < len(units)-1 {
		v /= 1000
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}

// memoryRoom is what this process may use: shared memory counts in its memory cgroup, and not in /dev/shm.
func memoryRoom(c *host.Cgroup, free *uint64) Check {
	most, err := sys.MemoryLimit()
	if err != nil {
		return Check{Name: "memory_room", State: Limited, Found: "not known: " + err.Error(), Remedy: "mount /proc, and leave this process descriptors (ulimit -n)"}
	}
	k := Check{Name: "memory_room", State: Works, Found: size(most) + " at most"}
	room := uint64(littleRoom)
	if free != nil {
		room = *free
		k.Found += ", " + size(room) + " available"
	}
	if c != nil {
		room = min(room, c.Room())
		k.Found += fmt.Sprintf(", room for %s in cgroup %s", size(c.Room()), c.Path)
	}
	if room < littleRoom {
		k.State, k.Remedy = Limited, "a larger memory.max of the cgroup (docker --memory, MemoryMax of the service, --mem of the job), or less in queues (QueueLimitBytes)"
	}
	return k
}

func hugeRoom(pools []host.Pool) Check {
	if pools == nil {
		return Check{Name: "hugetlb_room", State: Limited, Found: "not known: /sys/kernel/mm/hugepages cannot be read", Remedy: "mount /sys"}
	}
	k := Check{Name: "hugetlb_room", State: Missing, Found: "no huge pages are reserved", Remedy: "sysctl vm.nr_hugepages=N; without, arenas lie on ordinary pages"}
	for i, p := range pools {
		text := fmt.Sprintf("%d of %d pages of %s free", p.Free, p.Pages, size(p.Size))
		if i == 0 {
			k.Found, k.State = text, Limited
		} else {
			k.Found += ", " + text
		}
		if p.Free > 0 {
			k.State, k.Remedy = Works, ""
		}
	}
	return k
}

// ptrace is what the Yama module says of processes that read each other's memory.
func ptrace(scope *int) Check {
	k := Check{Name: "ptrace_scope", State: Works, Found: "processes of one user may read each other's memory"}
	if scope == nil || *scope == 0 {
		return k
	}
	k.State, k.Remedy = Limited, "sysctl kernel.yama.ptrace_scope=0; without, memory that is registered and not allocated by Weft is read by way of its owner"
	switch *scope {
	case 1:
		k.Found = "1: a process may read the memory of its children only, or of who allows it"
	case 2:
		k.Found = "2: only the superuser may read memory of other processes"
	default:
		k.Found = fmt.Sprintf("%d: nobody may read memory of other processes", *scope)
	}
	return k
}

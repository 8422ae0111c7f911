package ping

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
)

// Pin is where the two sides run.
type Pin string

// The places.
const (
	Anywhere Pin = ""      // where the kernel puts them
	Same     Pin = "same"  // on one processor
	Apart    Pin = "apart" // on two, of two cores where there are
)

// Pins are all places that have a name.
var Pins = []Pin{Same, Apart}

// word is the value in words.
func (p Pin) word() string {
	if p == Anywhere {
		return "not given"
	}
	return string(p)
}

// ErrPin says that the machine has no such places.
var ErrPin = errors.New("ping: cannot pin")

// CPUs chooses a processor for each side, of those that this process may use.
func CPUs(p Pin) (local, peer int, err error) {
	list, err := sys.Affinity(0)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrPin, err)
	}
	return choose(p, list, func(cpu int) string {
		// Where it cannot be read, each processor counts as a core.
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			return strconv.Itoa(cpu)
		}
		return strings.TrimSpace(string(b))
	})
}

// choose does it for a list of processors; core tells which ones share one.
func choose(p Pin, list []int, core func(cpu int) string) (local, peer int, err error) {
	local = list[0]
	if p != Apart {
		return local, local, nil
	}
	others := list[1:]
	if len(others) == 0 {
		return 0, 0, fmt.Errorf("%w: this process may use one processor only", ErrPin)
	}
	of := core(local)
	if i := slices.IndexFunc(others, func(cpu int) bool { return core(cpu) != of }); i >= 0 {
		return local, others[i], nil
	}
	return local, others[0], nil
}

// PinProcess puts all threads of this process on one processor, as if it had been started there, until
// restore is called. Nothing else may do such things meanwhile.
func PinProcess(cpu int) (restore func() error, err error) {
	before, err := sys.Affinity(0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPin, err)
	}
	procs := runtime.GOMAXPROCS(1)
	restore = func() error {
		defer runtime.GOMAXPROCS(procs)
		return allThreads(before)
	}
	if err := allThreads([]int{cpu}); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// allThreads sets the affinity of all threads. One that starts meanwhile inherits
// that of a thread, old or new, so it goes on until there is no thread that it does not know.
func allThreads(cpus []int) error {
	known := make(map[int]bool)
	for {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPin, err)
		}
		news := 0
		for _, entry := range list {
			tid, err := strconv.Atoi(entry.Name())
			if err != nil || known[tid] {
				continue
			}
			known[tid] = true
			news++
			if err := sys.SetAffinity(tid, cpus); err != nil && !gone(err) {
				return fmt.Errorf("%w: %w", ErrPin, err)
			}
		}
		if news == 0 {
			return nil
		}
	}
}

// StartOn calls start, which starts a process, on a thread that runs on one processor:
// the process inherits that.
func StartOn(cpu int, start func() error) error {
	done := make(chan error)
	go func() {
		// The thread ends with this goroutine: there is nothing to put back, which could fail when the process runs already.
		runtime.LockOSThread()
		if err := sys.SetAffinity(0, []int{cpu}); err != nil {
			done <- fmt.Errorf("%w: %w", ErrPin, err)
			return
		}
		done <- start()
	}()
	return <-done
}

// gone says that a thread has ended meanwhile.
func gone(err error) bool { return errors.Is(err, syscall.ESRCH) }

package sys

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Go has no question for "is this memory of the Go heap?", and functions that need it to be abort the process. But a runtime.Pinner
// ignores pointers that are not, and notes those that are: the list is the first field of what it points to.

// pinnerView is the beginning of what a runtime.Pinner points to.
type pinnerView struct{ refs []unsafe.Pointer }

// OfGoHeap says whether b, which is not empty, is memory of the Go heap: allocated by the runtime for one object, also a part of one. Global
// variables are not. It fails if this version of Go cannot be asked. The caller has b: an address of the heap at which he knows of no object must not be
// asked of, at which the runtime may abort.
func OfGoHeap(b []byte) (bool, error) {
	if err := heapQuestion(); err != nil {
		return false, err
	}
	return askHeap(unsafe.Pointer(unsafe.SliceData(b)))
}

func view(p *runtime.Pinner) *pinnerView { return *(**pinnerView)(unsafe.Pointer(p)) }

func askHeap(p unsafe.Pointer) (is bool, err error) {
	var pinner runtime.Pinner
	defer func() {
		if r := recover(); r != nil { // an object of an experimental arena, or what has been given back meanwhile
			is, err = false, nil
			if v := view(&pinner); v != nil {
				v.refs = nil // else the finalizer aborts
			}
		}
	}()
	pinner.Pin(p)
	defer pinner.Unpin()
	v := view(&pinner)
	if v == nil || len(v.refs) > 1 || len(v.refs) == 1 && v.refs[0] != p {
		return false, errHeapQuestion
	}
	return len(v.refs) == 1, nil
}

var errHeapQuestion = errors.New("sys: this Go cannot be asked what its heap is")

// aGlobal is memory that is not of the heap.
var aGlobal [16]byte

// heapTrial is what came of the trial. It is not done while there is no memory for it.
var heapTrial struct {
	sync.Mutex
	done atomic.Bool
	err  error
}

// heapQuestion tries the question once, with memory of which the answer is known.
func heapQuestion() error {
	if heapTrial.done.Load() {
		return heapTrial.err
	}
	heapTrial.Lock()
	defer heapTrial.Unlock()
	if heapTrial.done.Load() {
		return heapTrial.err
	}
	m, err := MapAnonymous(osPageSize)
	if err != nil {
		return err
	}
	defer m.Close()
	heapTrial.err = tryHeap(m.Bytes())
	heapTrial.done.Store(true)
	return heapTrial.err
}

func tryHeap(mapping []byte) error {
	if unsafe.Sizeof(runtime.Pinner{}) != unsafe.Sizeof(uintptr(0)) {
		return errHeapQuestion
	}
	on := make([]byte, 100)
	for _, trial := range []struct {
		b    []byte
		want bool
	}{{on, true}, {on[50:], true}, {make([]byte, 1<<20), true}, {mapping, false}, {aGlobal[:], false}} {
		is, err := askHeap(unsafe.Pointer(unsafe.SliceData(trial.b)))
		if err != nil || is != trial.want {
			return fmt.Errorf("%w: wrong answer for memory of which it is known", errHeapQuestion)
		}
	}
	return nil
}

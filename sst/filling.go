package sst

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// filling is the memory of a step while the program fills it. A step can be given up
// then, by Close in another goroutine, say: its memory goes when the program cannot touch
// it any more, so that no program is hurt, and none is left with a mapping and the
// goroutine of a domain that nobody will close.
//
// Where no span was handed out that is when no call is inside. A span is the program's
// until it says that it has done with the step, by whatever call. One that drops the step
// instead has done with its spans as well.
type filling struct {
	data  *stepData
	mu    sync.Mutex // held by the call that is inside
	lost  atomic.Bool
	spans bool            // handed out; guarded by mu
	freed bool            // guarded by mu, as is unused
	drop  runtime.Cleanup // frees what the program has dropped
}

// enter begins a call that touches the memory.
func (f *filling) enter() { f.mu.Lock() }

// leave ends it.
func (f *filling) leave() {
	f.mu.Unlock()
	f.letGo(false)
}

// giveUp gives the memory up: nothing is put into it any more. It does not wait. st is
// the step that it belongs to.
func (f *filling) giveUp(st *openStep) {
	f.drop = runtime.AddCleanup(st, (*stepData).release, f.data)
	f.lost.Store(true)
	f.letGo(false)
}

// letGo frees memory that was given up, unless somebody may still touch it. done says
// that the program has done with its spans.
func (f *filling) letGo(done bool) {
	// Who is inside does it when he leaves.
	if !f.lost.Load() || !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	if f.freed || f.spans && !done {
		return
	}
	f.freed = true
	f.drop.Stop()
	f.data.release()
}

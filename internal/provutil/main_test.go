package provutil

import (
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// fake is an engine whose peers are goroutines that call arrive.
type fake struct {
	core *Core
	q    *CQ
	bell chan struct{}

	mu      sync.Mutex
	pending []uint64 // contexts of completions that come with the next poll
	armed   bool
	rings   int
	noise   bool // something arrived that completes nothing
	polls   int
	parks   int
	arming  func() // while it arms, after the last poll
	fd      Bell   // readable while rung
}

// rig is a Core with a fake engine and a queue.
func rig(t testing.TB, c CoreConfig, size int) *fake {
	t.Helper()
	e := &fake{bell: make(chan struct{}, 1)}
	e.core = NewCore(e, c)
	var err error
	if e.q, err = NewCQ(e.core, provider.CQConfig{Size: size}); err != nil {
		t.Fatal(err)
	}
	e.core.Start()
	t.Cleanup(func() { e.core.Stop() })
	return e
}

// arrive is what a peer does: it leaves something and rings if need be.
func (e *fake) arrive(contexts ...uint64) {
	e.mu.Lock()
	e.pending = append(e.pending, contexts...)
	e.noise = true
	e.mu.Unlock()
	e.ring()
}

func (e *fake) ring() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.armed {
		e.armed = false
		e.rings++
		e.Unpark()
		if e.fd != nil {
			e.fd.Ring()
		}
	}
}

func (e *fake) Poll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.polls++
	moved := e.noise
	e.noise = false
	for len(e.pending) > 0 && e.q.Reserve(1) {
		e.q.Push(&provider.Completion{Context: e.pending[0], Kind: provider.RecvDone})
		e.pending = e.pending[1:]
		moved = true
	}
	if len(e.pending) > 0 {
		e.q.Stall()
	}
	return moved
}

func (e *fake) Arm() bool {
	if e.arming != nil {
		e.arming()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed = true
	return e.noise
}

func (e *fake) Disarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed = false
	if e.fd != nil {
		e.fd.Clear()
	}
}

func (e *fake) Park() {
	<-e.bell
	e.mu.Lock()
	defer e.mu.Unlock()
	e.parks++
}

func (e *fake) Unpark() {
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

func (e *fake) Descriptor() (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd == nil {
		b, err := SystemBell(-1)
		if err != nil {
			return -1, err
		}
		e.fd = b
	}
	return e.fd.Fd(), nil
}

func (e *fake) isArmed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.armed
}

// bothModes runs a test in both progress modes, with several ladders.
func bothModes(t *testing.T, f func(t *testing.T, c CoreConfig)) {
	for name, c := range map[string]CoreConfig{
		"auto":           {},
		"auto, no spin":  {Spin: -1},
		"manual":         {Progress: provider.Manual},
		"manual, yields": {Progress: provider.Manual, Spin: -1, Yield: func() {}},
	} {
		t.Run(name, func(t *testing.T) { f(t, c) })
	}
}

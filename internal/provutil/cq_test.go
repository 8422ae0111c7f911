package provutil

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"pgregory.net/rapid"
)

// A queue against a slice: reservations bound it, and completions come out once and in order (F51).
func TestF51Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "size")
		c := NewCore(&fake{bell: make(chan struct{}, 1)}, CoreConfig{Progress: provider.Manual, Spin: -1})
		q, err := NewCQ(c, provider.CQConfig{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		c.engine.(*fake).q = q
		var queued []uint64
		held, next := 0, uint64(0)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		starved, room := false, false
		freed := func() {
			if starved {
				starved, room = false, true
			}
		}
		took := func(got []provider.Completion) {
			for i := range got {
				if got[i].Context != queued[i] {
					t.Fatalf("%d, want %d", got[i].Context, queued[i])
				}
			}
			queued = queued[len(got):]
			if len(got) > 0 {
				freed()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n := rapid.IntRange(0, 3).Draw(t, "n")
				c.Lock()
				defer c.Unlock()
				want := len(queued)+held+n <= size
				if q.Reserve(n) != want {
					t.Fatalf("reserve %d of %d with %d and %d: %v", n, size, len(queued), held, !want)
				}
				if want {
					held += n
				} else if err := q.Refuse(); !errors.Is(err, provider.ErrAgain) {
					t.Fatal(err)
				} else {
					starved = true
				}
			},
			"push": func(t *rapid.T) {
				if held == 0 {
					t.Skip()
				}
				c.Lock()
				defer c.Unlock()
				q.Push(&provider.Completion{Context: next})
				queued = append(queued, next)
				next++
				held--
			},
			"release": func(t *rapid.T) {
				if held == 0 {
					t.Skip()
				}
				c.Lock()
				defer c.Unlock()
				q.Release(1)
				held--
				freed()
			},
			"read": func(t *rapid.T) {
				out := make([]provider.Completion, rapid.IntRange(0, 4).Draw(t, "n"))
				n, err := q.Read(out)
				if err != nil || n != min(len(out), len(queued)) {
					t.Fatalf("%d, %v, want %d", n, err, min(len(out), len(queued)))
				}
				took(out[:n])
			},
			"wait": func(t *rapid.T) {
				out := make([]provider.Completion, rapid.IntRange(1, 4).Draw(t, "n"))
				n, err := q.Wait(ended, out)
				switch {
				case n != min(len(out), len(queued)):
					t.Fatalf("%d, %v, want %d", n, err, min(len(out), len(queued)))
				case n > 0 || room:
					if err != nil {
						t.Fatal(err)
					}
				case !errors.Is(err, context.Canceled):
					t.Fatal(err)
				}
				if n == 0 {
					room = false
				}
				took(out[:n])
			},
			"signal": func(t *rapid.T) {
				q.Signal()
				if _, err := q.Wait(ended, make([]provider.Completion, 1)); !errors.Is(err, provider.ErrSignal) {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				c.Lock()
				defer c.Unlock()
				if q.Unread() != len(queued) || q.Free() != size-held-len(queued) {
					t.Fatalf("%d, %d", q.Unread(), q.Free())
				}
			},
		})
	})
}

func TestCQConfig(t *testing.T) {
	c := NewCore(&fake{}, CoreConfig{})
	for _, size := range []int{-1, MaxCQSize + 1} {
		if _, err := NewCQ(c, provider.CQConfig{Size: size}); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%d: %v", size, err)
		}
	}
	q, err := NewCQ(c, provider.CQConfig{})
	if err != nil || q.Free() != 4096 || q.core != c {
		t.Error(err, q.Free())
	}
	if _, err := q.Wait(t.Context(), nil); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
	if own, err := OwnCQ(c, q); own != q || err != nil {
		t.Error(err)
	}
	if own, err := OwnCQ(c, nil); own != nil || err != nil {
		t.Error(err)
	}
	if _, err := OwnCQ(NewCore(&fake{}, CoreConfig{}), q); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
}

// A wait for room ends without a completion, for all who wait, and not again at once.
func TestRoom(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, cfg, 1)
			defer e.core.Stop()
			e.core.Lock()
			if !e.q.Reserve(1) || e.q.Reserve(1) || !errors.Is(e.q.Refuse(), provider.ErrAgain) {
				t.Error("not refused")
			}
			e.core.Unlock()
			results := make(chan error, 2)
			for range 2 {
				go func() {
					var c [1]provider.Completion
					n, err := e.q.Wait(t.Context(), c[:])
					if n != 0 {
						t.Error(n)
					}
					results <- err
				}()
			}
			synctest.Wait()
			e.core.Lock()
			e.q.Release(1)
			e.core.Unlock()
			for range 2 {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
			if err := roomWithin(t.Context(), e.q, firstReminder/2); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("again: %v", err)
			}
			e.core.Lock()
			defer e.core.Unlock()
			if s := e.core.Stats(); s.Again != 1 {
				t.Errorf("%+v", s)
			}
		})
	})
}

// What waits at a peer for a place comes when completions are read, also if nobody polls again.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{}, 2)
		defer e.core.Stop()
		e.arrive(1, 2, 3)
		synctest.Wait()
		var c [1]provider.Completion
		if n, err := e.q.Wait(t.Context(), c[:]); n != 1 || err != nil {
			t.Error(n, err)
		}
		synctest.Wait()
		e.core.Lock()
		defer e.core.Unlock()
		if e.q.Unread() != 2 {
			t.Errorf("%d unread", e.q.Unread())
		}
	})
}

func TestCQClose(t *testing.T) {
	e := rig(t, CoreConfig{}, 4)
	e.core.Lock()
	if err := e.q.Attach(); err != nil {
		t.Error(err)
	}
	e.core.Unlock()
	if err := e.q.Close(); !errors.Is(err, provider.ErrBusy) {
		t.Error(err)
	}
	e.core.Lock()
	e.q.Detach()
	e.q.Reserve(1)
	e.q.Push(&provider.Completion{Context: 4})
	e.core.Unlock()
	for range 2 {
		if err := e.q.Close(); err != nil {
			t.Error(err)
		}
	}
	e.core.Lock()
	if err := e.q.Attach(); !errors.Is(err, provider.ErrClosed) {
		t.Error(err)
	}
	e.core.Unlock()
	var c [2]provider.Completion
	if n, err := e.q.Read(c[:]); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := e.q.Read(c[:]); n != 0 || !errors.Is(err, provider.ErrClosed) {
		t.Error(n, err)
	}
	if _, err := e.q.Descriptor(); !errors.Is(err, provider.ErrClosed) {
		t.Error(err)
	}
	<-e.q.Ready()
}

// The descriptor is readable after TryWait when something comes: in auto mode without a call, in manual mode because
// the engine's is.
func TestDescriptor(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		cfg.NewBell = SystemBell
		e := rig(t, cfg, 4)
		if e.q.TryWait() {
			t.Error("no descriptor")
		}
		n, err := e.q.Descriptor()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.q.Close(); err != nil {
				t.Error(err)
			}
			if e.fd != nil {
				e.core.Stop()
				_ = e.fd.Close()
			}
		}()
		if again, err := e.q.Descriptor(); again != n || err != nil {
			t.Error(again, err)
		}
		loop, err := sys.NewPoller()
		if err != nil {
			t.Fatal(err)
		}
		defer loop.Close()
		fd := sys.NewFD(n, "of the queue")
		defer fd.Disown()
		if err := loop.Add(fd, sys.Readable, 1); err != nil {
			t.Fatal(err)
		}
		var c [1]provider.Completion
		for i := range uint64(20) {
			if !e.q.TryWait() {
				t.Fatal("an empty queue")
			}
			go e.arrive(i)
			if err := loop.Park(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if n, err := e.q.Read(c[:]); n != 1 || err != nil || c[0].Context != i {
				t.Fatal(n, err, c[0].Context)
			}
		}
		e.arrive(5)
		for e.q.TryWait() { // not yet seen
			if err := loop.Park(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := e.q.Read(c[:]); n != 1 {
			t.Error(n)
		}
	})
	if _, err := rig(t, CoreConfig{}, 1).q.Descriptor(); !errors.Is(err, provider.ErrNotSupported) {
		t.Error(err)
	}
}

func TestNoAllocations(t *testing.T) {
	e := rig(t, CoreConfig{Progress: provider.Manual}, 8)
	var c [2]provider.Completion
	comp := provider.Completion{Context: 1}
	if n := testing.AllocsPerRun(100, func() {
		e.core.Lock()
		e.q.Reserve(1)
		e.q.Push(&comp)
		e.core.Unlock()
		_, _ = e.q.Wait(t.Context(), c[:])
		_, _ = e.q.Read(c[:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

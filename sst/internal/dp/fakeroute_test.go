package dp

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// fakeRoute is a way to memory of the test. Each view is a copy of its own, which is
// overwritten at its release: who looks there later sees it.
type fakeRoute struct {
	t      testing.TB
	memory map[fabric.Key][]byte

	mu   sync.Mutex
	err  func(fabric.Key) error // what View says instead, if that is not nil
	wait chan struct{}          // View waits until it is closed, or the context ends
	came chan struct{}          // gets a token when View waits
	made int                    // views
	out  int                    // of them, not released
	last []byte
}

const poison = 0xee

func (f *fakeRoute) View(ctx context.Context, key fabric.Key, at uint64, n int) ([]byte, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wait != nil {
		wait := f.wait
		f.mu.Unlock()
		f.came <- struct{}{}
		var err error
		select {
		case <-wait:
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.mu.Lock()
		if err != nil {
			return nil, nil, &fabric.OpError{Op: "view", Err: err}
		}
	}
	if f.err != nil {
		if err := f.err(key); err != nil {
			return nil, nil, &fabric.OpError{Op: "view", Err: fmt.Errorf("this key: %w", err)}
		}
	}
	m := f.memory[key]
	if n <= 0 || at > uint64(len(m)) || uint64(n) > uint64(len(m))-at {
		return nil, nil, &fabric.OpError{Op: "view", Err: fmt.Errorf("%d bytes at %d of %d: %w", n, at, len(m), fabric.ErrKey)}
	}
	b := bytes.Clone(m[at:][:n])
	f.made++
	f.out++
	f.last = b
	released := false
	return b, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if released {
			f.t.Error("a view was released twice")
		}
		released = true
		f.out--
		for i := range b {
			b[i] = poison
		}
	}, nil
}

// lends says whether b is a part of the last view.
func (f *fakeRoute) lends(b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.last {
		if &f.last[i] == &b[0] {
			return true
		}
	}
	return false
}

// fail makes every View fail.
func (f *fakeRoute) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = func(fabric.Key) error { return err }
}

// wantViews checks how many views were made, and how many are out.
func (f *fakeRoute) wantViews(t *testing.T, what string, made, out int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made != made || f.out != out {
		t.Errorf("%s: %d views were made and %d are out, want %d and %d", what, f.made, f.out, made, out)
	}
}

// fakes are routes to the memory of ranks whose blocks lie in extents.
type fakes struct {
	*Native
	sent     chan sentRequest // what was asked for, and is answered at once
	routes   []*fakeRoute
	extents  []sstmsg.Block
	answered func(q sentRequest) error // instead, if not nil
}

// newFakes returns a plane whose writer ranks have these extents; nil is a rank that has
// no route. The block of rank r in step n is blockOf(n, r, ...).
func newFakes(t testing.TB, number int64, lists ...[]Extent) *fakes {
	t.Helper()
	f := &fakes{sent: make(chan sentRequest, 1<<16)}
	e := NewEvpath(EvpathConfig{ReaderID: ourID, Lost: errLost, Grace: 1, Send: func(_ context.Context, rank int, m *sstmsg.ReadRequest) error {
		q := sentRequest{rank, m}
		f.sent <- q
		if f.answered != nil {
			return f.answered(q)
		}
		answer(f.Evpath, q)
		return nil
	}})
	f.Native = NewNative(e)
	e.Attach(writerIDs)
	var routes []Route
	for rank, list := range lists {
		fake := &fakeRoute{t: t, memory: map[fabric.Key][]byte{}, came: make(chan struct{}, 16)}
		for _, x := range list {
			m := make([]byte, x.At+x.Length+8) // there is more behind
			copy(m[x.At:], blockOf(number, rank, int(x.end()))[x.Offset:])
			fake.memory[x.Key] = m
		}
		var route Route
		if list != nil {
			route = fake
		}
		routes, f.routes = append(routes, route), append(f.routes, fake)
		f.extents = append(f.extents, sstmsg.Block{Data: sstmsg.ByteBlob(AppendExtents(nil, list))})
	}
	f.Use(routes)
	t.Cleanup(func() {
		f.Close(errTest)
		for rank, r := range f.routes {
			if r.out != 0 {
				t.Errorf("%d views of rank %d were not released", r.out, rank)
			}
		}
	})
	return f
}

// asked takes the requests that were sent, and returns how many bytes each rank was
// asked for.
func (f *fakes) asked() map[int]int64 {
	n := map[int]int64{}
	for {
		select {
		case q := <-f.sent:
			n[q.rank] += q.msg.Length
		default:
			return n
		}
	}
}

package memmon_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

const (
	workers  = 8
	standing = 10 * time.Second // how long a worker may stand still
)

var workBytes = 2 * os.Getpagesize()

// TestSoakUserfaultHang has workers register, send, unmap, and map again, beside the garbage collector, with userfaultfd; then again, and its reader
// ends in the middle. Nobody hangs, what is on the wire is what lies in memory, and after the end of the reader nothing is kept.
func TestSoakUserfaultHang(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true},
		testutil.Capability{Name: sys.IOUring.String(), Probe: func() error { return sys.Features{}.Check(sys.IOUring) }, Fixed: true})
	for _, procs := range []int{1, 2} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("GOMAXPROCS=%d killed=%v", procs, killed), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				newHang(t).run(t, killed)
			})
		}
	}
}

// hang is a cache with a card, and what its workers count.
type hang struct {
	a     *memmon.Arbiter
	cache *mrcache.Cache[pinnic.Handle]
	card  *pinnic.Card

	wire sync.Mutex
	far  *net.TCPConn

	steps   [workers + 1]atomic.Int64 // the last one is the collector's
	longest atomic.Int64              // nanoseconds
	again   atomic.Int64              // acquired again, being told of what was there before
	after   atomic.Int64              // registrations after the end of the reader
}

func newHang(t *testing.T) *hang {
	t.Helper()
	h := new(hang)
	var err error
	if h.a, err = memmon.NewArbiter(); err != nil {
		t.Fatal(err)
	}
	if err := h.a.Choose("userfaultfd"); err != nil {
		t.Fatal(err)
	}
	if h.card, h.far, err = pinnic.New(pinnic.Config{}); err != nil {
		t.Fatal(err)
	}
	if h.cache, err = mrcache.New(h.card, mrcache.Config{Arbiter: h.a, MaxCount: 2 * workers}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.cache.Close(), h.a.Close(), h.far.Close(), h.card.Close()); err != nil {
			t.Error(err)
		}
		if s := h.cache.Stats(); s.Pinned != 0 || s.Entries != 0 {
			t.Errorf("not all was given back: %+v", s)
		}
	})
	if s := h.a.Status(); s.State != memmon.Running {
		t.Fatalf("%+v", s)
	}
	return h
}

// run has all work for a while. killed: the reader ends in the middle.
func (h *hang) run(t *testing.T, killed bool) {
	const few, full = 2000, 10 * time.Minute
	more, before := testutil.Last(t, few, full), testutil.Last(t, few/2, full/2)
	end := sync.OnceFunc(func() {
		if err := memmon.EndReader(h.a); err != nil {
			t.Error(err)
		}
	})
	defer testutil.Watch(t, standing, h.steps[:])()
	stop := make(chan struct{})
	var all, collector sync.WaitGroup
	collector.Go(func() { h.collect(stop) })
	var total atomic.Int64
	for i := range workers {
		all.Go(func() {
			defer h.steps[i].Store(-1)
			for n := 0; more() && !t.Failed(); n++ {
				if killed && !before() {
					end()
				}
				began := time.Now()
				if err := h.step(n, byte(n*workers+i)); err != nil {
					t.Errorf("worker %d, step %d: %v", i, n, err)
				}
				h.took(time.Since(began))
				h.steps[i].Add(1)
				total.Add(1)
			}
		})
	}
	all.Wait()
	close(stop)
	collector.Wait()
	s, status := h.cache.Stats(), h.a.Status()
	t.Logf("registration: %d steps of %d workers, the longest %v; %d hits, %d not kept, %d after the end of the reader, %d acquired again", total.Load(), workers,
		time.Duration(h.longest.Load()), s.Hits, s.NoMonitor, h.after.Load(), h.again.Load())
	if killed != (status.State == memmon.Failed) || killed != (h.after.Load() > 0) {
		t.Errorf("%v, %d registrations after the end of the reader", status, h.after.Load())
	}
	if s.Hits == 0 || s.DeadMonitor+s.New == 0 {
		t.Errorf("it shows little: %+v", s)
	}
}

func (h *hang) collect(stop chan struct{}) {
	defer h.steps[workers].Store(-1)
	for {
		select {
		case <-stop:
			return
		default:
			runtime.GC()
			debug.FreeOSMemory()
			h.steps[workers].Add(1)
		}
	}
}

func (h *hang) took(d time.Duration) {
	for {
		n := h.longest.Load()
		if int64(d) <= n || h.longest.CompareAndSwap(n, int64(d)) {
			return
		}
	}
}

// step maps memory, sends it twice, has it become other memory, and sends that.
func (h *hang) step(n int, id byte) error {
	m, err := sys.MapAnonymous(workBytes)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	for round := range 2 {
		if err := h.send(m.Bytes(), id); err != nil {
			return fmt.Errorf("way %d, round %d: %w", n%4, round, err)
		}
	}
	switch n % 4 {
	case 0:
		err = m.MapOver()
	case 1:
		err = sys.NewPages(m.Bytes())
	case 2:
		err = m.Move()
	case 3:
		if err = m.Close(); err != nil {
			return err
		}
		if m, err = sys.MapAnonymous(workBytes); err != nil { // most often at the same address
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := h.send(m.Bytes(), ^id); err != nil {
		return fmt.Errorf("way %d, afterwards: %w", n%4, err)
	}
	return nil
}

var (
	errStale = errors.New("on the wire is not what lies in memory")
	errKept  = errors.New("it is kept although the reader has ended")
)

// send fills memory and sends it through the cache.
func (h *hang) send(b []byte, id byte) error {
	for i := range b {
		b[i] = id
	}
	failed := h.a.Status().State == memmon.Failed
	r, err := h.cache.Acquire(memmon.Mapped(b, nil))
	for errors.Is(err, mrcache.ErrRemapped) {
		h.again.Add(1)
		r, err = h.cache.Acquire(memmon.Mapped(b, nil))
	}
	if err != nil {
		return err
	}
	if failed {
		h.after.Add(1)
		if r.Why() == mrcache.Kept {
			err = errKept
		}
	}
	got, sendErr := h.carries(r.Handle(), len(b))
	if sendErr == nil && bytes.Count(got, []byte{id}) != len(b) {
		sendErr = errStale
	}
	return errors.Join(err, sendErr, r.Release())
}

// carries is what the wire, which takes all of it at once, carries of a registration.
func (h *hang) carries(x pinnic.Handle, n int) ([]byte, error) {
	h.wire.Lock()
	defer h.wire.Unlock()
	got := make([]byte, n)
	if err := h.card.Send(x, 0, n); err != nil {
		return nil, err
	}
	_, err := io.ReadFull(h.far, got)
	return got, err
}

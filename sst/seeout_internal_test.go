package sst

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/step"
)

// TestSeeOut: End sees the records of a step out, and no longer than it should.
func TestSeeOut(t *testing.T) {
	m := &stepMemory{heap: step.NewHeapPool(0), ranks: 1, sent: make(chan struct{}, 1), went: make(chan struct{}, 1)}
	w := &Writer{}
	sees := func(d *stepData) <-chan struct{} {
		d.use()
		w.memory.asked.Store(m.asked.Load())
		expected := w.expects(d)
		done := make(chan struct{})
		go func() { d.seeOut(expected); close(done) }()
		return done
	}
	t.Run("nothing is on its way", func(t *testing.T) {
		d := m.get(false)
		<-sees(d)
		if n := d.uses.Load(); n != 1 {
			t.Errorf("%d uses are left, want the step's own", n)
		}
		d.release()
	})
	t.Run("until all is sent", func(t *testing.T) {
		d := m.get(false)
		d.use() // two records
		d.use()
		done := sees(d)
		testutil.Eventually(t, "it waits, or has given up", func() bool {
			select {
			case <-done:
				return true
			default:
				return m.awaited.Load()
			}
		})
		d.release()
		d.release()
		<-done
		if n := d.uses.Load(); n != 1 {
			t.Errorf("%d uses are left, want the step's own", n)
		}
		d.release()
	})
	t.Run("until readers have asked for as much as before", func(t *testing.T) {
		before := m.get(false)
		before.asked.Store(manyBytes)
		before.release()
		d := m.get(false)
		done := sees(d)
		testutil.Eventually(t, "it waits, or has given up", func() bool { return isDone(done) || m.awaited.Load() })
		d.use()
		d.asked.Add(manyBytes)
		d.release()
		m.tellAwaiting()
		<-done
		d.release()
	})
	t.Run("a reader that asks late is not waited for", func(t *testing.T) {
		d := m.get(false)
		d.out = time.Now().Add(-askFor)
		d.wasAsked(1)
		if n := d.asked.Load(); n != 0 {
			t.Errorf("%d bytes count", n)
		}
		d.out = time.Now().Add(time.Hour) // however slow this machine is
		d.wasAsked(1)
		if n := d.asked.Swap(m.asked.Load()); n != 1 {
			t.Errorf("%d bytes count, want those that were asked for at once", n)
		}
		d.release()
	})
	t.Run("readers that give it back unread are not waited for", func(t *testing.T) {
		d := m.get(false)
		if w.memory.asked.Store(m.asked.Load()); w.expects(d) == 0 {
			t.Fatal("nothing is expected")
		}
		d.retired.Store(true)
		synctest.Test(t, func(t *testing.T) { // in whose time only a timer takes some
			began := time.Now()
			d.use()
			if d.seeOut(w.expects(d)); time.Since(began) > 0 {
				t.Errorf("it took %v", time.Since(began))
			}
		})
		d.retired.Store(false)
		d.asked.Store(m.asked.Load())
		d.release()
	})
	t.Run("pushed data are not asked for", func(t *testing.T) {
		if n := w.expects(&stepData{pushed: true}); n != 0 {
			t.Errorf("%d bytes are expected", n)
		}
	})
	t.Run("readers that do not ask again", func(t *testing.T) {
		d := m.get(false)
		if m.asked.Load() < manyBytes {
			t.Fatal("nothing is expected")
		}
		<-sees(d)
		d.release()
		if m.asked.Load() != 0 {
			t.Error("it is expected for ever")
		}
	})
	t.Run("a reader that takes nothing", func(t *testing.T) {
		d := m.get(false)
		d.use()
		<-sees(d) // by its bound: nobody sends
		if n := d.uses.Load(); n != 2 {
			t.Errorf("%d uses are left, want the step's own and the record's", n)
		}
		d.release()
		d.release()
	})
}

// TestIsFull says for which queues End sees its data out.
func TestIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		params         Params
		steps, readers int
		observers      bool
		want           bool
	}{
		"no limit":  {Params{}, 5, 1, false, false},
		"room":      {Params{QueueLimit: 2}, 1, 1, false, false},
		"full":      {Params{QueueLimit: 2}, 2, 1, false, true},
		"no reader": {Params{QueueLimit: 1}, 1, 0, false, false},
		"observers": {Params{QueueLimit: 1}, 1, 2, true, false},
		"discard":   {Params{QueueLimit: 1, QueueFullPolicy: "Discard"}, 1, 1, false, false},
	} {
		w := &Writer{cfg: WriterConfig{Params: c.params}, steps: map[int64]*stepData{}, readers: map[readerKey]*attached{}}
		for i := range c.steps {
			w.steps[int64(i)] = nil
		}
		for i := range c.readers {
			w.readers[readerKey(i)] = &attached{observer: c.observers}
		}
		if got := w.isFull(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestSeesOut: a step that is free already, or whose memory another one has, is let
// be, also while the queue is full.
func TestSeesOut(t *testing.T) {
	d := &stepData{}
	w := &Writer{
		cfg:     WriterConfig{Params: Params{QueueLimit: 1}},
		steps:   map[int64]*stepData{0: {}, 2: d}, // step 0 is precious
		readers: map[readerKey]*attached{1: {}},
	}
	for number, want := range map[int64]bool{1: false, 2: true} {
		if got := w.seesOut(&openStep{number: number, data: d}); got != want {
			t.Errorf("step %d: %v, want %v", number, got, want)
		}
	}
}

package sst

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/step"
)

// TestSeeOut: End sees the records of a step out, and no longer than it should.
func TestSeeOut(t *testing.T) {
	m := &stepMemory{pool: step.NewHeapPool(0), ranks: 1, sent: make(chan struct{}, 1), went: make(chan struct{}, 1)}
	sees := func(d *stepData) <-chan struct{} {
		d.use()
		done := make(chan struct{})
		go func() { d.seeOut(); close(done) }()
		return done
	}
	t.Run("nothing is on its way", func(t *testing.T) {
		d := m.get()
		<-sees(d)
		if n := d.uses.Load(); n != 1 {
			t.Errorf("%d uses are left, want the step's own", n)
		}
		d.release()
	})
	t.Run("until all is sent", func(t *testing.T) {
		d := m.get()
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
	t.Run("a reader that takes nothing", func(t *testing.T) {
		d := m.get()
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
		want           bool
	}{
		"no limit":  {Params{}, 5, 1, false},
		"room":      {Params{QueueLimit: 2}, 1, 1, false},
		"full":      {Params{QueueLimit: 2}, 2, 1, true},
		"no reader": {Params{QueueLimit: 1}, 1, 0, false},
		"discard":   {Params{QueueLimit: 1, QueueFullPolicy: "Discard"}, 1, 1, false},
	} {
		w := &Writer{cfg: WriterConfig{Params: c.params}, steps: map[int64]*stepData{}, readers: map[readerKey]*attached{}}
		for i := range c.steps {
			w.steps[int64(i)] = nil
		}
		for i := range c.readers {
			w.readers[readerKey(i)] = nil
		}
		if got := w.isFull(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package dp

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// earlyPush pushes n bytes, and returns what Push says.
func earlyPush(e *Evpath, number int64, rank, n int, m *memory) error {
	return e.Push(&sstmsg.Preload{Step: number, WriterRank: int64(rank), ReaderID: ourID, Data: sstmsg.ByteBlob(make([]byte, n))}, m.free())
}

func newEarly(t *testing.T, max uint64) *Evpath {
	t.Helper()
	e := NewEvpath(EvpathConfig{ReaderID: ourID, MaxEarly: max})
	e.Attach(writerIDs)
	t.Cleanup(func() { e.Close(errTest) })
	return e
}

// TestEarly: blocks of steps that were not announced are bounded; those of others
// are not, and steps that are announced make room.
func TestEarly(t *testing.T) {
	const size = 1000
	e := newEarly(t, 3*(size+blockCost))
	var m, refused memory
	for _, b := range []block{{0, 0}, {7, 1}, {1 << 40, 2}} {
		if err := earlyPush(e, b.step, b.rank, size, &m); err != nil {
			t.Fatal(err)
		}
	}
	if err := earlyPush(e, 1, 0, 1, &refused); !errors.Is(err, ErrEarly) {
		t.Errorf("a block too many: %v", err)
	}
	refused.want(t, "refused", 1)
	m.want(t, "the others", 0)
	e.Announce(0)
	for range 2 { // a repeat takes nothing
		if err := earlyPush(e, 8, 0, size, &refused); err != nil {
			t.Error(err)
		}
	}
	refused.want(t, "repeat", 2)
	for rank := range writerIDs {
		if err := earlyPush(e, 0, rank, 100*size, &m); err != nil {
			t.Errorf("a step that was announced: %v", err)
		}
	}
	m.want(t, "step 0 was pushed by its first rank before", 1)
	if err := earlyPush(e, 9, 0, 1, &refused); !errors.Is(err, ErrEarly) {
		t.Errorf("a block too many: %v", err)
	}
}

// TestAnnounceGaps: steps that an announcement goes over never come.
func TestAnnounceGaps(t *testing.T) {
	e := newEarly(t, 0)
	var gap, kept memory
	for n := range int64(4) {
		if err := earlyPush(e, n, 0, 10, &gap); err != nil {
			t.Fatal(err)
		}
	}
	if err := earlyPush(e, 4, 0, 10, &kept); err != nil {
		t.Fatal(err)
	}
	e.Announce(4)
	gap.want(t, "before the first step", 4)
	kept.want(t, "announced", 0)
	e.Announce(4)
	e.Announce(2)
	e.Drop(4, 4) // passed over, or dropped by the writer
	kept.want(t, "dropped", 1)
	e.Announce(9)
	e.Announce(12)
	e.Drop(9, 9) // after a later one was announced
	if len(e.dropped) != 1 || e.dropped[0] != (span{0, 11}) {
		t.Errorf("dropped are %v", e.dropped)
	}
	for n, want := range map[int64]bool{0: true, 9: true, 11: true, 12: false, 13: false} {
		if got := e.over(n); got != want {
			t.Errorf("step %d is over: %v", n, got)
		}
	}
	e.Forget(12)
	if e.early.total != 0 || len(e.early.cost) != 0 || len(e.dropped) != 0 {
		t.Errorf("early %+v, dropped %v", e.early, e.dropped)
	}
}

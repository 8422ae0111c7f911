package sst_test

import (
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// lentValues make a step whose block is lent to the kernel, of which several fit
// into the buffers of a connection: 512 KiB.
const lentValues = 64 << 10

// TestLentStepsStayWhole: what lies in a connection for a reader that was detached,
// or for an observer, is what it was, whatever the memory of its steps is used
// for since.
func TestLentStepsStayWhole(t *testing.T) {
	for name, observer := range map[string]bool{"evicted": false, "observer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := sst.Params{LagLimit: 2}
			stream := streamName(t)
			x := define(t, create(t, stream, sst.WriterConfig{Params: params}), lentValues)
			honest := attach(t, stream, sst.ReaderConfig{})
			slow := attachesWeft(t, stream, observer)
			hearAgain := slow.deafen()
			const steps = 12
			for n := range int64(steps) {
				x.must(t)
				takeStep(t, honest)
				testutil.Eventually(t, "the writer has the release", func() bool {
					r := x.w.Info().Readers
					return len(r) > 0 && r[0].Released == n+1
				})
			}
			hearAgain()
			compared := 0
			for {
				h := next(t, "message", slow.got)
				if p, ok := h.msg.(*sstmsg.Preload); ok {
					compared++
					wantNumbers(t, p.Step, p.Data)
				}
				if m, ok := h.msg.(*sstmsg.TimestepMetadata); ok && observer && m.Step == steps-1 {
					break
				}
				if m, ok := h.msg.(*sstmsg.WriterClose); ok {
					if m.Code != sstmsg.CloseEvicted {
						t.Errorf("%+v", m)
					}
					break
				}
			}
			if compared == 0 {
				t.Error("no block came")
			}
		})
	}
}

// attachesWeft attaches a fake Weft reader that insists on every step being pushed.
func attachesWeft(t *testing.T, name string, observer bool) *fakeReader {
	t.Helper()
	r := dials(t, name)
	r.sendAs(&sstmsg.DPQuery{WriterID: r.stream, Condition: 1, Weft: 1}, true)
	hear[*sstmsg.DPQueryResponse](r.fake)
	m := r.registration()
	m.SpecPreload = 1
	if observer {
		m.Observer = 1
	}
	r.sendAs(m, true)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.query()
	return r
}

// wantNumbers compares a block with what numbers writes for a step.
func wantNumbers(t *testing.T, number int64, data [][]byte) {
	t.Helper()
	i := int64(0)
	for _, part := range data {
		for ; len(part) >= 8; part = part[8:] {
			if got := int64(binary.LittleEndian.Uint64(part)); got != number<<20+i {
				t.Fatalf("step %d: value %d is of step %d", number, i, got>>20)
			}
			i++
		}
	}
	if i != lentValues {
		t.Errorf("step %d: %d values", number, i)
	}
}

package cp

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// TestFirstStep: a real writer announces to a late reader the last step that it
// has made, and then sends the next one.
func TestFirstStep(t *testing.T) {
	for name, arrive := range map[string]func(int64) ReaderEvent{"whole": arrives, "discarded": discarded} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(testReaderConfig())
			want := func(n int64) {
				t.Helper()
				if got := r.FirstStep(); got != n {
					t.Errorf("first step %d, want %d", got, n)
				}
			}
			want(0)
			r.Handle(Start{})
			r.Handle(plane("evpath"))
			r.Handle(response(func(m *sstmsg.WriterResponse) { m.NextStep = 8 }))
			want(8)
			r.Handle(arrive(9))
			want(9)
			r.Handle(arrives(10))
			want(9)
		})
	}
}

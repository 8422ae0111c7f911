package provutil

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Two programs that read in a loop, each waiting for what the other gives it, take turns at once: neither keeps the
// lock, or the processor, until the runtime takes it away.
func TestReadersTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := rig(t, CoreConfig{Progress: provider.Manual}, 8)
	other, err := NewCQ(e.core, provider.CQConfig{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	queues := []*CQ{e.q, other}
	give := func(q *CQ) {
		e.core.Lock()
		defer e.core.Unlock()
		if !q.Reserve(1) {
			t.Error("no place")
		}
		q.Push(&provider.Completion{})
	}
	const turns = 250 // each; of 10 ms if nobody yields
	start := time.Now()
	give(queues[0])
	var all sync.WaitGroup
	for i, q := range queues {
		all.Go(func() {
			var c [1]provider.Completion
			for range turns {
				for n := 0; n == 0; n, _ = q.Read(c[:]) {
				}
				give(queues[1-i])
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("%d turns took %v", 2*turns, took)
	}
}

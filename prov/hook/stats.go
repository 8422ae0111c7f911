package hook

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Stats are the numbers of all domains that were opened through a hook.
type Stats struct {
	Ops   map[provider.Kind]OpStats // of each kind that was seen
	Acted []uint64                  // how often each rule has acted
}

// OpStats are the numbers of one kind of operation.
type OpStats struct {
	Posted  uint64 // taken, also with Quiet
	Refused uint64 // by the provider or by a rule
	Dropped uint64 // by a rule
	Ended   uint64 // completions handed to the program, those that failed among them
	Failed  uint64
	Bytes   uint64    // of the completions that did not fail
	Latency Histogram // from the post to the hand-over of its completion
}

// Histogram counts durations by powers of two: Buckets[i] has those of less than 2^i nanoseconds that are in no bucket before.
type Histogram struct {
	Buckets [48]uint64
	Count   uint64
	Max     time.Duration
}

func (h *Histogram) add(d time.Duration) {
	d = max(d, 0)
	h.Buckets[min(bits.Len64(uint64(d)), len(h.Buckets)-1)]++
	h.Count++
	h.Max = max(h.Max, d)
}

// Quantile is a duration that a part q of them does not exceed, to within a factor of two; q is between 0 and 1.
func (h *Histogram) Quantile(q float64) time.Duration {
	rest := max(1, uint64(math.Ceil(q*float64(h.Count))))
	for i, n := range h.Buckets {
		if rest <= n {
			return min(time.Duration(1)<<i-1, h.Max)
		}
		rest -= n
	}
	return h.Max
}

// numbers is where Stats are counted.
type numbers struct {
	mu  sync.Mutex
	ops map[provider.Kind]*OpStats
}

// on changes the numbers of a kind.
func (n *numbers) on(k provider.Kind, change func(*OpStats)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.ops[k]
	if s == nil {
		s = &OpStats{}
		n.ops[k] = s
	}
	change(s)
}

func (n *numbers) snapshot() map[provider.Kind]OpStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[provider.Kind]OpStats, len(n.ops))
	for k, s := range n.ops {
		all[k] = *s
	}
	return all
}

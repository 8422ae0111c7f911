package hook

import (
	"math/rand/v2"
	"sync"
	"time"
)

// faults decides. The n-th time that a rule is asked it decides the same for the same seed, whatever other rules do.
type faults struct {
	mu    sync.Mutex
	rules []rule
}

type rule struct {
	Rule
	random *rand.Rand
	seen   uint64
	acted  uint64
}

// verdict is what is to be done.
type verdict struct {
	delay time.Duration
	err   error
	drop  bool
	kill  bool
}

func newFaults(seed uint64, rules []Rule) *faults {
	f := &faults{}
	for i, r := range rules {
		f.rules = append(f.rules, rule{Rule: r, random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	return f
}

// at asks all rules that act at a place. Delays add up; of the others the first counts.
func (f *faults) at(p Point) verdict {
	if len(f.rules) == 0 {
		return verdict{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var v verdict
	for i := range f.rules {
		r := &f.rules[i]
		if r.At&p == 0 || !r.acts() {
			continue
		}
		v.delay += r.Delay
		if v.err == nil && !v.drop && !v.kill {
			v.err, v.drop, v.kill = r.Err, r.Drop, r.Kill
		}
	}
	return v
}

// acts says whether a rule acts this time.
func (r *rule) acts() bool {
	r.seen++
	if r.seen <= r.After || r.Count > 0 && r.acted >= r.Count {
		return false
	}
	if r.Chance > 0 && r.random.Float64() >= r.Chance {
		return false
	}
	r.acted++
	return true
}

// counts lists how often each rule has acted.
func (f *faults) counts() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]uint64, len(f.rules))
	for i := range f.rules {
		list[i] = f.rules[i].acted
	}
	return list
}

// pause holds a call up.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

package memmon

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// poster is one post, step by step, as events.post makes them: what others can see in between.
type poster struct {
	r    Range
	step int
	n    uint64
	told bool
}

const posterSteps = 7

func (p *poster) next(e *events) {
	switch p.step {
	case 0:
		p.n = atomic.AddUint64(&e.w[wordBegun], 1) - 1
	case 1:
		e.touch(p.r)
	case 2: // as write begins
		slot := e.slot(p.n)
		was := slot[2]
		if p.told = was&writing == 0 && was <= p.n; p.told {
			slot[2] = (p.n + 1) | writing
		}
	case 3:
		if slot := e.slot(p.n); p.told {
			slot[0], slot[1], slot[2] = p.r.Addr, p.r.Len, p.n+1
		}
	case 4:
		p.told = p.told && e.w[wordBegun]-p.n <= e.slots()
	case 5:
		if !p.told {
			e.w[wordLost]++
		}
	case 6:
		e.w[wordDone]++
	}
	p.step++
}

// interleaved is a state of several posters and of one who looks.
type interleaved struct {
	words   [3]uint64
	touched [2]uint64
	slots   [2 * slotWords]uint64
	posters [3]poster
	trail   trail
}

// play goes through all orders of the steps, and looks in all places between them.
type play struct {
	t       *testing.T
	e       *events
	watched Range
	near    uint64 // the numbers of the two granules
	far     uint64
	known   map[interleaved]bool
	path    []string
}

func (p *play) load(s *interleaved) {
	w := p.e.w
	w[wordBegun], w[wordLost], w[wordDone] = s.words[0], s.words[1], s.words[2]
	w[wordTouched+p.near], w[wordTouched+p.far] = s.touched[0], s.touched[1]
	copy(w[wordFirst:], s.slots[:])
}

func (p *play) store(s *interleaved) {
	w := p.e.w
	s.words = [3]uint64{w[wordBegun], w[wordLost], w[wordDone]}
	s.touched = [2]uint64{w[wordTouched+p.near], w[wordTouched+p.far]}
	copy(s.slots[:], w[wordFirst:])
}

// from plays on; false if it has found what must not be.
func (p *play) from(s interleaved) bool {
	if p.known[s] {
		return true
	}
	p.known[s] = true
	p.load(&s)
	now, a := p.e.look(s.trail, p.watched)
	gone := s.posters[0].step == posterSteps // its memory goes now, and the address is used again
	if a == same && gone {
		p.t.Errorf("%d slots: what was posted is not seen: %v", p.e.slots(), p.path)
		return false
	}
	if a == same && now != s.trail {
		looked := s
		looked.trail = now
		p.path = append(p.path, "look")
		if !p.from(looked) {
			return false
		}
		p.path = p.path[:len(p.path)-1]
	}
	for i := range s.posters {
		if s.posters[i].step == posterSteps {
			continue
		}
		n := s
		p.load(&n)
		n.posters[i].next(p.e)
		p.store(&n)
		p.path = append(p.path, fmt.Sprintf("%d.%d", i, s.posters[i].step))
		if !p.from(n) {
			return false
		}
		p.path = p.path[:len(p.path)-1]
	}
	return true
}

// TestEventsInAllOrders has posters stop at each of their steps, for as long as others have any of theirs, and somebody look at any time: memory of
// which the post is done is never said to be the same.
func TestEventsInAllOrders(t *testing.T) {
	watched, far := Range{0x10000, 0x1000}, Range{1 << 30, 1}
	for slots := 1; slots <= 2; slots++ {
		for _, others := range [][2]Range{{far, far}, {{0x20000, 1}, far}, {far, {0x20000, 1}}} {
			p := &play{
				t: t, e: small(t, slots), watched: watched, known: make(map[interleaved]bool),
				near: numberOf(watched.Addr >> granuleBits), far: numberOf(far.Addr >> granuleBits),
			}
			var s interleaved
			s.posters[0].r = watched
			for i, r := range others {
				s.posters[i+1].r = r
			}
			s.trail = p.e.start(watched)
			p.from(s)
			t.Logf("%d slots: %d states", slots, len(p.known))
		}
	}
}

package shm

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// A word of life tells a peer of our death before the kernel has freed our memory and closed our sockets: the kernel
// marks it, and wakes who sleeps on it, when the thread that owns it ends (internal/sys, RobustOwner). Each pair with
// another process has one of our words for itself, since the kernel wakes one sleeper only.
const (
	homeLives = 2048
	lifeWords = 128 // as many as a thread can sleep on
	lifeEvery = 8
)

// lifeOffsets are where our words are in our home.
func lifeOffsets() []int {
	list := make([]int, lifeWords)
	for i := range list {
		list[i] = homeLives + i*lifeEvery
	}
	return list
}

// life is a peer's word, which has the value alive while the peer lives.
type life struct {
	word  *atomic.Uint32 // nil: there is none
	alive uint32
}

// lifeIn is the n-th word of a peer's home, from 1 on. A peer that writes something else into it can only have itself
// taken for dead, or not noticed.
func lifeIn(home *sys.Mapping, n uint32) life {
	if n == 0 || n > lifeWords {
		return life{}
	}
	w, ok := shmem.AtomicUint32(home.Bytes()[homeLives+int(n-1)*lifeEvery:])
	if !ok {
		panic("shm: misaligned word in our own layout")
	}
	l := life{word: w, alive: w.Load()}
	if l.alive&sys.OwnerWaits == 0 { // nobody owns it
		return life{}
	}
	return l
}

// died says whether the kernel has marked the word.
func (l life) died() bool { return l.word != nil && l.word.Load()&sys.OwnerDied != 0 }

// vigil is a domain's second goroutine, on a thread of its own: it owns our words of life, and sleeps on those of the peers.
// It is there, in auto mode, once there is a pair with another process. A kernel that lacks one of the two gets the other; what is
// missing is done by the ends of the sockets.
type vigil struct {
	d     *domain
	owner *sys.RobustOwner // nil: our words are nobody's
	free  []uint32         // words that no pair has; the domain's lock guards it
	done  chan struct{}

	changed atomic.Uint32 // the word with which it is woken

	mu      sync.Mutex // a leaf
	ended   bool
	watched map[*pair]life
}

// keepVigil starts it if it is to be. Locked.
func (d *domain) keepVigil() {
	if d.vigil != nil || d.core.Manual() {
		return
	}
	v := &vigil{d: d, done: make(chan struct{}), watched: make(map[*pair]life)}
	d.vigil = v
	if d.features.Has(sys.RobustList) {
		owner, err := sys.NewRobustOwner(d.home.m, lifeOffsets(), v.run, d.features)
		if err == nil {
			v.owner = owner
			for i := range uint32(lifeWords) {
				v.free = append(v.free, i+1)
			}
			return
		}
		d.warnOnce("life", "peers are told of this process's death by the sockets alone", err)
	}
	if d.features.Has(sys.FutexWaitv) {
		go v.run()
		return
	}
	close(v.done)
}

// end ends it and has joined it at return; our words are 0 then. Unlocked.
func (v *vigil) end() {
	if v == nil {
		return
	}
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.wake()
	<-v.done
	if v.owner != nil {
		_ = v.owner.Close()
	}
}

// wake has it look anew at what it is to watch.
func (v *vigil) wake() {
	v.changed.Add(1)
	_, _ = sys.FutexWake(&v.changed, 1)
}

// watch has it sleep on the word of a peer as well, if there is room. Locked.
func (v *vigil) watch(p *pair, l life) {
	if v == nil || l.word == nil || !v.d.features.Has(sys.FutexWaitv) {
		return
	}
	v.mu.Lock()
	full := len(v.watched) >= lifeWords-1
	if !full {
		v.watched[p] = l
	}
	v.mu.Unlock()
	if !full {
		v.wake()
	}
}

// forget ends watch, before the word is unmapped. Locked.
func (v *vigil) forget(p *pair) {
	if v == nil {
		return
	}
	v.mu.Lock()
	_, had := v.watched[p]
	delete(v.watched, p)
	v.mu.Unlock()
	if had {
		v.wake()
	}
}

// run is its life.
func (v *vigil) run() {
	defer close(v.done)
	var words []sys.WaitWord
	failed := false
	for {
		own := sys.WaitWord{Word: &v.changed, Value: v.changed.Load()}
		list, died, ended := v.look(append(words[:0], own))
		words = list
		switch {
		case ended:
			return
		case died:
			v.d.core.Lock()
			v.d.mourn()
			v.d.reap()
			v.d.core.Unlock()
			continue
		}
		if len(words) > 1 && !failed {
			err := sys.FutexWaitAny(words, 0, v.d.features)
			if err == nil || v.changed.Load() != own.Value { // one that is unmapped now
				continue
			}
			failed = true
			v.d.log.Warn("shm: deaths of peers are noticed by the sockets alone", "error", err)
		}
		_ = sys.FutexWait(own.Word, own.Value, 0)
	}
}

// look adds the words that are to be slept on, and says whether a peer has died. A word that has changed otherwise was given
// up, and is watched no more: so a peer that plays with its word wakes us once.
func (v *vigil) look(words []sys.WaitWord) (_ []sys.WaitWord, died, ended bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p, l := range v.watched {
		now := l.word.Load()
		if now == l.alive && now&sys.OwnerDied == 0 {
			words = append(words, sys.WaitWord{Word: l.word, Value: now})
			continue
		}
		died = died || now&sys.OwnerDied != 0
		delete(v.watched, p)
	}
	return words, died, v.ended
}

// lend gives the pair one of our words, which its peer watches; 0 if there is none. Locked.
func (p *pair) lend() uint32 {
	if p.lent != 0 || !p.other {
		return p.lent
	}
	p.d.keepVigil()
	if v := p.d.vigil; v != nil && len(v.free) > 0 {
		p.lent, v.free = v.free[0], v.free[1:]
	}
	return p.lent
}

// unlend takes it back, to be used again as late as possible: the peer may not have heard of the end. Locked.
func (p *pair) unlend() {
	if p.lent != 0 {
		p.d.vigil.free = append(p.d.vigil.free, p.lent)
		p.lent = 0
	}
}

// isForeign says whether a process is another one: those who share our process share our death.
func isForeign(c sys.Credentials) bool { return c.PID != os.Getpid() }

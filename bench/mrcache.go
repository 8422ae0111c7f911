package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// idleRegistrar does nothing.
type idleRegistrar struct{}

func (idleRegistrar) Register([]byte) (struct{}, error) { return struct{}{}, nil }
func (idleRegistrar) Deregister(struct{}) error         { return nil }

// mrCache is a cache, whatever its handles are.
type mrCache struct {
	pass  func(memmon.Kind) (mrcache.Reason, error) // acquires and releases
	stats func() mrcache.Stats
	close func() error
}

func newMRCache[H any](r mrcache.Registrar[H], cfg mrcache.Config) (mrCache, error) {
	c, err := mrcache.New(r, cfg)
	if err != nil {
		return mrCache{}, err
	}
	pass := func(k memmon.Kind) (mrcache.Reason, error) {
		r, err := c.Acquire(k)
		if err != nil {
			return mrcache.Kept, err
		}
		why := r.Why()
		return why, r.Release()
	}
	return mrCache{pass, c.Stats, c.Close}, nil
}

// mrSet is a stand that was set up.
type mrSet struct {
	mrStand

	arbiter *memmon.Arbiter
	memory  *mrMemory
	cache   mrCache // none before fill
	card    *pinnic.Card
	far     *net.TCPConn

	inserted, renewed atomic.Uint64 // buffers, so far
}

// newMRSet makes the memory of a stand.
func newMRSet(s mrStand) (*mrSet, error) {
	a, err := memmon.NewArbiter()
	if err != nil {
		return nil, err
	}
	if s.Kind == mrUserfault {
		err = a.Choose(string(mrUserfault))
	}
	t := &mrSet{mrStand: s, arbiter: a}
	if err == nil {
		t.memory, err = newMRMemory(a, s)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return t, nil
}

var errNotKept = errors.New("bench: memory is not kept registered")

// fill makes the cache, and has it hold what it is to hold.
func (t *mrSet) fill() (err error) {
	cfg := mrcache.Config{Arbiter: t.arbiter, MaxCount: max(t.Entries, 1), MaxBytes: ^uint64(0)}
	if t.Card {
		if t.card, t.far, err = pinnic.New(pinnic.Config{Slots: 2 * cardKept}); err != nil {
			return err
		}
		t.cache, err = newMRCache[pinnic.Handle](t.card, cfg)
	} else {
		t.cache, err = newMRCache[struct{}](idleRegistrar{}, cfg)
	}
	if err != nil || t.Kind == mrNone {
		return err
	}
	if err := t.refill(); err != nil {
		return err
	}
	kept := t.memory.kept
	rand.Shuffle(len(kept), func(i, k int) { kept[i], kept[k] = kept[k], kept[i] })
	return nil
}

// refill has the cache hold what it is to hold, by address at first: so userfaultfd watches one piece of memory.
func (t *mrSet) refill() error {
	for _, k := range t.memory.kept {
		why, err := t.cache.pass(k)
		if err != nil {
			return err
		}
		if why != mrcache.Kept {
			return fmt.Errorf("%w: %v; the monitor: %w", errNotKept, why, t.arbiter.Status().Why)
		}
	}
	return nil
}

// close ends all of it.
func (t *mrSet) close() error {
	var errs []error
	if t.cache.close != nil {
		errs = append(errs, t.cache.close())
	}
	if t.card != nil {
		errs = append(errs, t.far.Close(), t.card.Close())
	}
	return errors.Join(append(errs, t.memory.close(), t.arbiter.Close())...)
}

// missingMR says why a stand cannot be on this machine.
func missingMR(s mrStand) error {
	if s.Kind == mrUserfault {
		if err := sys.CanUserfault(); err != nil {
			return fmt.Errorf("userfaultfd: %w", err)
		}
	}
	if !s.Card {
		return nil
	}
	card, far, err := pinnic.New(pinnic.Config{Slots: cardKept})
	if err != nil {
		return fmt.Errorf("the card: %w", err)
	}
	defer far.Close()
	defer card.Close()
	if _, err := card.Register(make([]byte, cardKept*cardLarge)); err != nil {
		return fmt.Errorf("the card: %w", err)
	}
	return nil
}

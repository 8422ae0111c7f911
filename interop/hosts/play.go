package hosts

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

const (
	memoryBytes = 256 << 10 // that is registered
	sentBytes   = 16 << 10  // the first of them
)

// player plays events with memory of the C library.
type player struct {
	Host
	forced bool
	card   *pinnic.Card
	far    *net.TCPConn
	cache  *mrcache.Cache[pinnic.Handle]
}

// happening is a way in which memory becomes other memory.
type happening struct {
	get  func(Calls) (uint64, error)
	lose func(Calls, uint64) error // afterwards other memory lies there; errTaken: something of others does
	give func(Calls, uint64) error
}

// errTaken says that another thread got the address first: the round is to be played again.
var errTaken = errors.New("something else lies there by now")

// mostTaken is how many rounds in a row may come to nothing.
const mostTaken = 1000

func mapped(lose func(Calls, uint64) error) happening {
	return happening{
		get:  func(c Calls) (uint64, error) { return c.Map(memoryBytes) },
		lose: lose,
		give: func(c Calls, at uint64) error { return c.Unmap(at, memoryBytes) },
	}
}

func there(c Calls, at uint64) error {
	err := c.MapAt(at, memoryBytes, false)
	if errors.Is(err, syscall.EEXIST) {
		return errTaken
	}
	return err
}

var happenings = map[string]happening{
	"munmap, mmap": mapped(func(c Calls, at uint64) error {
		if err := c.Unmap(at, memoryBytes); err != nil {
			return err
		}
		return there(c, at)
	}),
	"mmap(MAP_FIXED)":   mapped(func(c Calls, at uint64) error { return c.MapAt(at, memoryBytes, true) }),
	"madvise(DONTNEED)": mapped(func(c Calls, at uint64) error { return c.Drop(at, memoryBytes) }),
	"madvise(FREE)":     mapped(func(c Calls, at uint64) error { return c.Lazy(at, memoryBytes) }),
	"madvise(REMOVE)": {
		get:  func(c Calls) (uint64, error) { return c.Shared(memoryBytes) },
		lose: func(c Calls, at uint64) error { return c.Remove(at, memoryBytes) },
		give: func(c Calls, at uint64) error { return c.Unmap(at, memoryBytes) },
	},
	"shmat(SHM_REMAP)": {
		get: func(c Calls) (uint64, error) { return c.Attach(0, memoryBytes) },
		lose: func(c Calls, at uint64) error {
			_, err := c.Attach(at, memoryBytes)
			return err
		},
		give: Calls.Detach,
	},
	"mremap, mmap": {
		get: func(c Calls) (uint64, error) { return c.Map(2 * memoryBytes) },
		lose: func(c Calls, at uint64) error {
			to, err := c.Grow(at, memoryBytes, 2*memoryBytes) // the second half is in the way
			if err != nil {
				return err
			}
			return errors.Join(there(c, at), c.Unmap(to, 2*memoryBytes))
		},
		give: func(c Calls, at uint64) error { return c.Unmap(at, 2*memoryBytes) },
	},
	"free, malloc": {
		get: func(c Calls) (uint64, error) { return c.Malloc(memoryBytes) },
		lose: func(c Calls, at uint64) error {
			c.Free(at)
			again, err := c.Malloc(memoryBytes)
			if err == nil && again != at {
				c.Free(again)
				err = errTaken
			}
			return err
		},
		give: func(c Calls, at uint64) error { c.Free(at); return nil },
	},
	"brk": {
		get: func(c Calls) (uint64, error) { return c.Break(memoryBytes) },
		lose: func(c Calls, at uint64) error {
			if end, err := c.Break(0); err != nil || end != at+memoryBytes {
				return errors.Join(err, errTaken)
			}
			_, err := c.Break(-memoryBytes)
			if err != nil {
				return err
			}
			if again, err := c.Break(memoryBytes); err != nil || again != at {
				return errors.Join(err, errTaken)
			}
			return nil
		},
		give: func(c Calls, at uint64) error {
			if end, err := c.Break(0); err != nil || end != at+memoryBytes {
				return err // it stays
			}
			_, err := c.Break(-memoryBytes)
			return err
		},
	},
}

// row plays one kind of event.
func (p *player) row(h happening, rounds int) (Row, error) {
	r := Row{Carries: map[string]int{}}
	taken := 0
	for r.Rounds < rounds {
		err := p.round(h, &r)
		if errors.Is(err, errTaken) && taken < mostTaken {
			taken++
			continue
		} else if err != nil {
			return r, err
		}
		taken = 0
		r.Rounds++
	}
	return r, nil
}

var errBefore = errors.New("the wire carries something else before anything has happened")

// round sends memory twice, has it become other memory, and sends that.
func (p *player) round(h happening, r *Row) error {
	at, err := h.get(p.Calls)
	if err != nil {
		return err
	}
	fill(at, 'O')
	if p.forced { // what it keeps from rounds before is of other memory at this address
		memmon.Process().Flush()
	}
	hits := p.cache.Stats().Hits
	for range 2 { // the second time it is known
		if carries, err := p.send(at); err != nil || carries != "OLD" {
			return errors.Join(err, errBefore)
		}
	}
	hits, seen := p.cache.Stats().Hits-hits, p.Seen()
	if err := h.lose(p.Calls, at); err != nil {
		return err
	}
	seen = p.Seen() - seen
	fill(at, 'N')
	carries, err := p.send(at)
	if err != nil {
		return err
	}
	r.Hits += hits
	r.Seen += seen
	r.Carries[carries]++
	return h.give(p.Calls, at)
}

func fill(at uint64, with byte) {
	b := sys.BytesAt(at, memoryBytes)
	for i := range b {
		b[i] = with
	}
}

// never is an owner that tells of nothing: what a cache is without anybody who tells.
type never struct{}

func (never) Generation() uint64 { return 0 }

// send sends the memory through the cache, and says what arrives.
func (p *player) send(at uint64) (string, error) {
	k := memmon.Mapped(sys.BytesAt(at, memoryBytes), nil)
	if p.forced {
		k = memmon.Mapped(k.Bytes(), never{})
	}
	r, err := p.cache.Acquire(k)
	if err != nil {
		return "", err
	}
	sent := make(chan error, 1)
	offset := int(at - r.Range().Addr)
	go func() { sent <- p.card.Send(r.Handle(), offset, sentBytes) }()
	got := make([]byte, sentBytes)
	_, err = io.ReadFull(p.far, got)
	err = errors.Join(<-sent, err, r.Release())
	switch {
	case bytes.Equal(got, bytes.Repeat([]byte{'O'}, sentBytes)):
		return "OLD", err
	case bytes.Equal(got, bytes.Repeat([]byte{'N'}, sentBytes)):
		return "NEW", err
	}
	return "a mixture", err
}

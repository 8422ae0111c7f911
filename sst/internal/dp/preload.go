package dp

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// block names the data block of a writer rank in a step.
type block struct {
	step int64
	rank int
}

// preloaded is a block that was pushed, or is awaited.
type preloaded struct {
	data  []byte
	free  func()
	here  bool
	over  bool // its step is over: free it after the last use
	users int
	awake bool          // it is here, its step is over, or the plane has failed
	ready chan struct{} // closed then; nil if nobody has waited
}

// wait returns what to wait for. The caller holds the plane's lock.
func (p *preloaded) wait() <-chan struct{} {
	switch {
	case p.awake:
		return awake
	case p.ready == nil:
		p.ready = make(chan struct{})
	}
	return p.ready
}

// awake is what is waited for in vain no longer.
var awake = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wake lets everybody who waits for the block look again. The caller holds the
// plane's lock.
func (p *preloaded) wake() {
	if !p.awake && p.ready != nil {
		close(p.ready)
	}
	p.awake = true
}

// drop gives the memory back if nobody uses it. The caller holds the plane's lock.
func (p *preloaded) drop() {
	if p.here && p.over && p.users == 0 && p.free != nil {
		p.free()
		p.free, p.data = nil, nil
	}
}

// part returns n bytes of the block at offset.
func (p *preloaded) part(number int64, rank int, offset, n uint64) ([]byte, error) {
	if size := uint64(len(p.data)); offset > size || n > size-offset {
		return nil, fmt.Errorf("step %d: %d bytes at %d of writer rank %d's block of %d: %w", number, n, offset, rank, size, errPush)
	}
	return p.data[offset : offset+n : offset+n], nil
}

// end takes the entry of a block out. The caller holds mu.
func (e *Evpath) end(b block, p *preloaded) {
	p.over = true
	p.wake()
	p.drop()
	delete(e.preloads, b)
}

// maxRank bounds the ranks that are believed before Attach.
const maxRank = 1<<31 - 1

// Push brings a preloaded block. The plane owns the memory until the step is
// over, and then calls free. Repeats and steps that are over are dropped. An error,
// an ErrEarly, means that the writer is not to be trusted; the block is dropped.
func (e *Evpath) Push(m *sstmsg.Preload, free func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	attached := e.writers != nil
	if m.WriterRank < 0 || m.WriterRank > maxRank || attached && m.WriterRank >= int64(len(e.writers)) || e.failure != nil {
		free()
		return nil
	}
	rank, size := int(m.WriterRank), uint64(m.Data.Len())
	var p *preloaded
	if !e.over(m.Step) {
		p = e.awaited(block{m.Step, rank})
	}
	e.countPush(rank, size, p == nil || p.here)
	if p == nil || p.here {
		free()
		return nil
	}
	if err := e.admit(m); err != nil {
		free()
		return err
	}
	p.data, p.free, p.here = m.Data.Bytes(), free, true
	p.wake()
	return nil
}

// awaited returns the entry of a block of a step that is not over. The caller
// holds mu.
func (e *Evpath) awaited(b block) *preloaded {
	p := e.preloads[b]
	if p == nil {
		p = &preloaded{}
		e.preloads[b] = p
	}
	return p
}

func (e *Evpath) readPreloaded(ctx context.Context, number int64, pieces []step.Piece) error {
	for _, p := range pieces {
		b, err := e.await(ctx, block{number, p.Rank})
		if err != nil {
			return e.explained(ctx, err)
		}
		if err := e.copyPart(b, number, p); err != nil {
			return err
		}
	}
	return nil
}

// copyPart fills a piece from a block in use, and ends that use.
func (e *Evpath) copyPart(b *preloaded, number int64, p step.Piece) error {
	defer e.unuse(b)
	data, err := b.part(number, p.Rank, p.Offset, uint64(len(p.Dst)))
	copy(p.Dst, data)
	return err
}

// await returns the block once it is here, in use until unuse.
func (e *Evpath) await(ctx context.Context, b block) (*preloaded, error) {
	p, ready, err := e.expect(b)
	if err != nil {
		return nil, err
	}
	if err := e.arrival(ctx, b, ready); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case p.here && !p.over:
		p.users++
		return p, nil
	case e.failure != nil:
		return nil, b.failed(e.failure)
	}
	return nil, fmt.Errorf("step %d: %w", b.step, errOver)
}

// failed says what an error of the whole plane means to who waits for the block.
func (b block) failed(err error) error {
	return fmt.Errorf("step %d: block of writer rank %d: %w", b.step, b.rank, err)
}

// expect returns the entry of a block that is here, or can still come, and what is
// closed when there is more to know.
func (e *Evpath) expect(b block) (*preloaded, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, known := e.preloads[b]
	switch {
	case known && p.here:
		return p, p.wait(), nil
	case e.failure != nil:
		return nil, nil, b.failed(e.failure)
	case e.over(b.step):
		return nil, nil, fmt.Errorf("step %d: %w", b.step, errOver)
	}
	p = e.awaited(b)
	return p, p.wait(), nil
}

func (e *Evpath) unuse(p *preloaded) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.users--
	p.drop()
}

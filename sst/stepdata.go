package sst

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// stepData is the memory of a step: one block store a rank. It is recycled when
// no reader holds the step and no reply refers to it.
type stepData struct {
	stores []*step.HeapStore
	uses   atomic.Int32       // the step itself, and replies on their way
	one    [1]*step.HeapStore // stores of the common case
	done   func(error)        // takes a use off, when a record that refers to it is done
	memory *stepMemory
}

// stepMemory gives memory to the steps of a writer. It is safe for concurrent use.
type stepMemory struct {
	pool  *step.HeapPool // of ended steps
	ranks int

	mu   sync.Mutex
	free []*stepData // empty ones
}

// maxFreeData bounds the empty ones that are kept.
const maxFreeData = 64

// get returns empty memory in one use.
func (m *stepMemory) get() *stepData {
	m.mu.Lock()
	var d *stepData
	if n := len(m.free); n > 0 {
		d, m.free = m.free[n-1], m.free[:n-1]
	}
	m.mu.Unlock()
	if d == nil {
		d = m.make()
	}
	d.use()
	return d
}

func (m *stepMemory) make() *stepData {
	d := &stepData{memory: m}
	d.done = func(error) { d.release() }
	if d.stores = d.one[:]; m.ranks != 1 {
		d.stores = make([]*step.HeapStore, m.ranks)
	}
	for i := range d.stores {
		d.stores[i] = m.pool.NewStore()
	}
	return d
}

func (m *stepMemory) put(d *stepData) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) < maxFreeData {
		m.free = append(m.free, d)
	}
}

// use adds a use. The caller knows that there is one already.
func (d *stepData) use() { d.uses.Add(1) }

// release takes a use off; the last one recycles the memory. It takes no lock of a
// stream.
func (d *stepData) release() {
	if d.uses.Add(-1) == 0 {
		for _, s := range d.stores {
			s.Reset()
		}
		d.memory.put(d)
	}
}

// preload is the message that carries the block of store i, which is that of a
// writer rank, to a reader rank.
func (d *stepData) preload(number int64, i, rank int, readerID int64) *sstmsg.Preload {
	s := d.stores[i]
	data, _ := s.Slices(0, s.Size()) // the whole range is never out of range
	return &sstmsg.Preload{Step: number, WriterRank: int64(rank), ReaderID: readerID, Data: data}
}

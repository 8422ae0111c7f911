package sst

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// stepData is the memory of a step: one block store a rank. It is recycled when
// no reader holds the step and no reply refers to it.
type stepData struct {
	stores []*step.HeapStore
	arena  bool               // readers of this node can look at it
	uses   atomic.Int32       // the step itself, and replies on their way
	one    [1]*step.HeapStore // stores of the common case
	memory *stepMemory
	asked  atomic.Int64 // bytes that readers have asked for at once

	// Guarded by the writer's mu.
	out    time.Time // when the step was out, if that filled the queue
	pushed bool      // to a reader, which does not ask then

	to      []*delivery // readers that records which refer to it are for; guarded by the writer's mu
	retired atomic.Bool // every reader has given the step back
	tainted atomic.Bool // a reader has gone that did not: it may still look at the memory
}

// delivery is what of a step is on its way to one reader.
type delivery struct {
	reader readerKey
	left   atomic.Int32 // records of data
	told   bool         // the reader's rank 0 is told of the step
	begun  atomic.Bool  // and something of that was written
	done   func(error)  // takes a record of data off
}

// stepMemory gives memory to the steps of a writer. It is safe for concurrent use.
type stepMemory struct {
	heap  *step.HeapPool // memory that is lent to the kernel (docs/decisions/0009)
	arena *step.HeapPool // memory that readers of this node look at; nil if there is none
	ranks int

	sent chan struct{} // says that something of a retired step is sent

	asked   atomic.Int64  // bytes that readers asked for at once, of the last step that they are done with
	awaited atomic.Bool   // somebody waits for the records of a step
	went    chan struct{} // says to it that one was sent

	mu      sync.Mutex
	free    []*stepData // empty ones, on the heap
	arenas  []*stepData // empty ones, in arenas
	expects []uint64    // bytes of each rank in the newest step
}

func (m *stepMemory) rouse() {
	select {
	case m.sent <- struct{}{}:
	default:
	}
}

// maxFreeData bounds the empty ones that are kept.
const maxFreeData = 64

// get returns empty memory in one use: in arenas, if that is asked for and there are any.
func (m *stepMemory) get(arena bool) *stepData {
	arena = arena && m.arena != nil
	if !arena && m.arena != nil { // nobody looks any more
		m.arena.Trim()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var d *stepData
	if free := m.empty(arena); len(*free) > 0 {
		last := len(*free) - 1
		d, *free = (*free)[last], (*free)[:last]
	} else {
		d = m.make(arena)
	}
	if arena { // in one piece, so that a reader can look at all of it at once
		for i, n := range m.expects {
			d.stores[i].Expect(n)
		}
	}
	d.use()
	return d
}

// empty returns the list of what is empty. The caller holds mu.
func (m *stepMemory) empty(arena bool) *[]*stepData {
	if arena {
		return &m.arenas
	}
	return &m.free
}

func (m *stepMemory) make(arena bool) *stepData {
	d := &stepData{memory: m, arena: arena}
	pool := m.heap
	if arena {
		pool = m.arena
	}
	if d.stores = d.one[:]; m.ranks != 1 {
		d.stores = make([]*step.HeapStore, m.ranks)
	}
	for i := range d.stores {
		d.stores[i] = pool.NewStore()
	}
	return d
}

func (m *stepMemory) put(d *stepData) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if free := m.empty(d.arena); len(*free) < maxFreeData {
		*free = append(*free, d)
	}
}

// expect notes the bytes of each rank in a step: the next one will have about as many.
func (m *stepMemory) expect(bytes []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expects = append(m.expects[:0], bytes...)
}

// held returns the bytes of steps that are in memory, that of free segments not among
// them.
func (m *stepMemory) held() uint64 {
	s := m.heap.Stats()
	n := s.Held - s.Free
	if m.arena != nil {
		s = m.arena.Stats()
		n += s.Held - s.Free
	}
	return n
}

// close gives the arenas back: those of steps that somebody still looks at later.
func (m *stepMemory) close() {
	if m.arena != nil {
		m.arena.Close()
	}
}

// use adds a use. The caller knows that there is one already.
func (d *stepData) use() { d.uses.Add(1) }

// useFor adds a use for a record that goes to a reader; its done takes it off. The
// caller holds the writer's mu.
func (d *stepData) useFor(key readerKey) *delivery {
	p := d.delivery(key)
	d.use()
	p.left.Add(1)
	return p
}

// delivery returns what is on its way to a reader. The caller holds the writer's mu.
func (d *stepData) delivery(key readerKey) *delivery {
	p := d.find(key)
	if p == nil {
		p = d.nextDelivery()
		p.reader, p.told = key, false
		p.begun.Store(false)
	}
	return p
}

// find returns what is on its way, or was, to a reader; nil if nothing. The caller
// holds the writer's mu.
func (d *stepData) find(key readerKey) *delivery {
	for _, p := range d.to {
		if p.reader == key {
			return p
		}
	}
	return nil
}

// nextDelivery adds one, of an earlier step if there is one left.
func (d *stepData) nextDelivery() *delivery {
	n := len(d.to)
	if n < cap(d.to) && d.to[:n+1][n] != nil {
		d.to = d.to[:n+1]
		return d.to[n]
	}
	p := &delivery{}
	p.done = func(error) {
		p.left.Add(-1)
		d.release()
	}
	d.to = append(d.to, p)
	return p
}

// size returns the bytes of a step that has ended.
func (d *stepData) size() uint64 {
	n := uint64(0)
	for _, s := range d.stores {
		n += s.Size()
	}
	return n
}

// release takes a use off; the last one recycles the memory. It takes no lock of a
// stream.
func (d *stepData) release() {
	memory := d.memory
	if d.uses.Add(-1) == 0 {
		d.reset()
		d.to = d.to[:0]
		memory.asked.Store(d.asked.Swap(0))
		memory.put(d)
		return
	}
	if d.retired.Load() {
		memory.rouse()
	}
	memory.tellAwaiting()
}

// reset empties the stores. What a reader that has gone may still have unread of
// them, in the kernel's pages, or looks at in an arena, stays what it was.
func (d *stepData) reset() {
	tainted := d.tainted.Swap(false)
	for _, s := range d.stores {
		if tainted {
			s.Discard()
		} else {
			s.Reset()
		}
	}
}

// wasAsked notes that a reader asks for n bytes. Those that it asks for later, having
// done something else first, are not waited for the next time. The caller holds the
// writer's mu.
func (d *stepData) wasAsked(n int64) {
	if time.Since(d.out) < askFor {
		d.asked.Add(n)
	}
}

// tellAwaiting tells who sees a step out that something happened.
func (m *stepMemory) tellAwaiting() {
	if m.awaited.Load() {
		select {
		case m.went <- struct{}{}:
		default:
		}
	}
}

// preload is the message that carries the block of store i, which is that of a
// writer rank, to a reader rank.
func (d *stepData) preload(number int64, i, rank int, readerID int64) *sstmsg.Preload {
	s := d.stores[i]
	data, _ := s.Slices(0, s.Size()) // the whole range is never out of range
	return &sstmsg.Preload{Step: number, WriterRank: int64(rank), ReaderID: readerID, Data: data}
}

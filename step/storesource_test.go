package step

import (
	"bytes"
	"errors"
	"sync"
)

var errNoMemory = errors.New("the source has no more")

// freed is what a source writes over memory that comes back to it.
const freed = 0xee

// storeSource is a source of memory for pools that finds out what is freed twice, or
// touched afterwards.
type storeSource struct {
	pool *HeapPool // whose lock must not be held during a call
	fail func(n int) bool

	mu     sync.Mutex
	asked  int // calls
	live   map[*storeMemory]bool
	dead   []*storeMemory
	keeps  map[*storeMemory][]byte // what memory must still hold when it comes back
	faults []string
}

type storeMemory struct {
	src *storeSource
	mem []byte
	n   int // that were asked for
}

// memoryPool returns a pool and its source.
func memoryPool(limit uint64) (*HeapPool, *storeSource) {
	src := &storeSource{live: map[*storeMemory]bool{}, keeps: map[*storeMemory][]byte{}}
	src.pool = NewMemoryPool(limit, src.alloc)
	return src.pool, src
}

func (src *storeSource) alloc(n int) (StoreMemory, error) {
	src.pool.Stats() // for ever, if the pool's lock were held
	src.mu.Lock()
	defer src.mu.Unlock()
	src.asked++
	if src.fail != nil && src.fail(n) {
		return nil, errNoMemory
	}
	// More than asked for, sometimes.
	m := &storeMemory{src: src, mem: bytes.Repeat([]byte{0xcd}, n+src.asked%3*4096), n: n}
	src.live[m] = true
	return m, nil
}

func (m *storeMemory) Bytes() []byte {
	m.src.mu.Lock()
	defer m.src.mu.Unlock()
	if !m.src.live[m] {
		m.src.faults = append(m.src.faults, "Bytes after Free")
	}
	return m.mem
}

func (m *storeMemory) Free() {
	m.src.pool.Stats()
	m.src.mu.Lock()
	defer m.src.mu.Unlock()
	if !m.src.live[m] {
		m.src.faults = append(m.src.faults, "freed twice")
	}
	if want, ok := m.src.keeps[m]; ok && !bytes.Equal(m.mem, want) {
		m.src.faults = append(m.src.faults, "discarded memory was changed")
	}
	delete(m.src.live, m)
	for i := range m.mem {
		m.mem[i] = freed
	}
	m.src.dead = append(m.src.dead, m)
}

// keep says that memory must come back as it is now.
func (src *storeSource) keep(s *HeapStore) {
	src.mu.Lock()
	defer src.mu.Unlock()
	for _, e := range s.Extents() {
		m := e.Memory.(*storeMemory)
		src.keeps[m] = bytes.Clone(m.mem)
	}
}

// counts returns the calls so far and the pieces of memory that are out, with the bytes
// that were asked for of them.
func (src *storeSource) counts() (asked, live int, size uint64) {
	src.mu.Lock()
	defer src.mu.Unlock()
	for m := range src.live {
		size += uint64(m.n)
	}
	return src.asked, len(src.live), size
}

// check returns what went wrong so far.
func (src *storeSource) check() []string {
	src.mu.Lock()
	defer src.mu.Unlock()
	for _, m := range src.dead {
		if bytes.Count(m.mem, []byte{freed}) != len(m.mem) {
			src.faults = append(src.faults, "written after Free")
		}
	}
	return src.faults
}

// finish checks a pool whose stores are all empty and that is closed.
func (src *storeSource) finish() []string {
	faults := src.check()
	if _, live, _ := src.counts(); live != 0 {
		faults = append(faults, "memory was never freed")
	}
	if st := src.pool.Stats(); st.Held != 0 || st.Free != 0 {
		faults = append(faults, "the pool counts memory that is freed")
	}
	return faults
}

// extentsAgree compares where a store says that its bytes lie with the bytes themselves.
func extentsAgree(s *HeapStore) error {
	at := uint64(0)
	seen := map[StoreMemory]bool{}
	for _, e := range s.Extents() {
		pieces, err := s.Slices(e.Offset, e.Length)
		switch {
		case err != nil:
			return err
		case e.Offset != at || e.Length == 0 || len(pieces) != 1:
			return errors.New("extents have gaps, or are none")
		case e.Memory == nil:
			return errors.New("memory of the heap")
		case seen[e.Memory]:
			return errors.New("two extents in one segment")
		}
		seen[e.Memory] = true
		mem := e.Memory.Bytes()[e.At:][:e.Length]
		if &mem[0] != &pieces[0][0] {
			return errors.New("an extent names other bytes than Slices")
		}
		at += e.Length
	}
	if at != s.Size() {
		return errors.New("extents end too early")
	}
	return nil
}

package shm

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// The home is a domain's memory that all its peers read:
//
//	   0 u64 armed: the epoch of the doorbell; while it is odd the domain sleeps
//	  64 what cross.go needs
//	2048 the words of life, 128 of u32, one at every eighth byte (life.go)
//	4096 the table of arena blocks, 65536 entries of 32 bytes:
//	   0 u64 key: of the block that is there; 0 while the entry is free or changes
//	   8 u32 segment | u32 access; segment 2^32-1: memory of the owner's own, which no peer can map
//	  16 u64 offset in the segment, or, of the owner's own memory, its address for process_vm_readv; 0: not for that
//	  24 u64 bytes
const (
	homeArmed    = 0
	homeTable    = pageSize
	tableEntries = 1 << 16
	entryLen     = 32
	homeSize     = homeTable + tableEntries*entryLen
)

// A key is a place in the table of its domain (low 16 bits) and a number that is new with each registration.
const keyPlaceBits = 16

func makeKey(place uint32, gen uint64) provider.Key {
	return provider.Key(gen<<keyPlaceBits | uint64(place))
}

func keyPlace(k provider.Key) uint32 { return uint32(k) & (1<<keyPlaceBits - 1) }

// word is an atomic word of shared memory. The offset is ours and right; words of a peer's memory must only be
// loaded.
func word(b []byte, off int) *atomic.Uint64 {
	w, ok := shmem.AtomicUint64(b[off:])
	if !ok {
		panic("shm: misaligned word in our own layout")
	}
	return w
}

// home is our own.
type home struct {
	*file
	armed *atomic.Uint64
}

func newHome(f sys.Features) (*home, error) {
	file, err := newFile("home", homeSize, false, f)
	if err != nil {
		return nil, err
	}
	return &home{file: file, armed: word(file.m.Bytes(), homeArmed)}, nil
}

// publish makes a block known under its key.
func (h *home) publish(key provider.Key, e extent, n uint64, a provider.Access) {
	b := h.m.Bytes()[homeTable+int(keyPlace(key))*entryLen:][:entryLen]
	word(b, 8).Store(uint64(e.seg) | uint64(a)<<32)
	word(b, 16).Store(e.off)
	word(b, 24).Store(n)
	word(b, 0).Store(uint64(key))
}

// retract takes the key back: from here on nobody finds the block.
func (h *home) retract(key provider.Key) {
	word(h.m.Bytes(), homeTable+int(keyPlace(key))*entryLen).Store(0)
}

// foreignHome is a peer's.
type foreignHome struct {
	m     *sys.Mapping
	armed *atomic.Uint64
}

func newForeignHome(m *sys.Mapping) foreignHome {
	return foreignHome{m: m, armed: word(m.Bytes(), homeArmed)}
}

// block is what a table says of a key. All of it comes from a peer.
type block struct {
	seg    uint32
	access provider.Access
	off    uint64
	len    uint64
}

// find looks a key up. The caller has published a hazard for the key before, so what find returns stays as long
// as the hazard. False means that the key names no arena block.
func (h *foreignHome) find(key provider.Key) (block, bool) {
	b := h.m.Bytes()[homeTable+int(keyPlace(key))*entryLen:][:entryLen]
	if key == 0 || word(b, 0).Load() != uint64(key) {
		return block{}, false
	}
	w := word(b, 8).Load()
	e := block{seg: uint32(w), access: provider.Access(w >> 32), off: word(b, 16).Load(), len: word(b, 24).Load()}
	// Else it was taken back, and its place used anew, while we read.
	return e, word(b, 0).Load() == uint64(key)
}

package shm

import "fmt"

// What peers make us map has bounds of the whole domain: a process has 65530 mappings and 2^47 bytes of addresses, unless
// an administrator says otherwise, and one that has run out of either cannot go on.
const (
	maxForeignMaps  = 32768
	maxForeignBytes = 1 << 45
)

// foreign is what is mapped of segments of peers.
type foreign struct {
	maps  int
	bytes uint64
}

func (f *foreign) add(maps int, bytes uint64) {
	f.maps += maps
	f.bytes += bytes
}

func (f *foreign) sub(maps int, bytes uint64) {
	f.maps -= maps
	f.bytes -= bytes
}

// afford says whether there is room for a segment of the peer's. No peer may have more than all that is left: then there is
// room for the next one, however many there are.
func (p *pair) afford(maps int, bytes uint64) error {
	all, mine := p.d.foreign, p.foreign
	if mine.maps+maps > maxForeignMaps-all.maps || bytes > maxForeignBytes || mine.bytes+bytes > maxForeignBytes-all.bytes {
		return fmt.Errorf("its segments have %d mappings of %d bytes, those of all peers %d of %d: no room for %d bytes more",
			mine.maps, mine.bytes, all.maps, all.bytes, bytes)
	}
	return nil
}

// account adds a segment that was mapped for the pair, or takes one out that was unmapped.
func (s *foreignSegment) account(p *pair) {
	s.pair, s.maps, s.size = p, 1, uint64(len(s.m.Bytes()))
	if s.w != nil {
		s.maps, s.size = 2, 2*s.size
	}
	p.foreign.add(s.maps, s.size)
	p.d.foreign.add(s.maps, s.size)
}

// release is the end of account.
func (s *foreignSegment) release() {
	s.pair.foreign.sub(s.maps, s.size)
	s.pair.d.foreign.sub(s.maps, s.size)
	s.maps, s.size = 0, 0 // it may be let go of twice
}

package provutil

import (
	"bytes"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// Devices mostly pin memory to write to it, whatever they are asked to do with it, and refuse (EFAULT) memory that can only be read: a view of a
// peer's memory, a file. To send it is no mistake, so it is copied.

// readOnly says whether b can be read, and not all of it written.
func readOnly(b []byte) bool {
	r := memmon.RangeOf(b)
	list, err := sys.MappingsOf(r.Addr, r.Len)
	if err != nil || !sys.Gapless(list, r.Addr, r.Len) {
		return false
	}
	writable := true
	for _, m := range list {
		if !m.Readable {
			return false
		}
		writable = writable && m.Writable
	}
	return !writable
}

// copied registers a copy of a segment for the operation. The owner is asked before and after: of a view that is released nothing is sent, even if it
// can still be read.
func (x *Local[H]) copied(s *provider.Segment) (err error) {
	was := generation(s.Kind)
	x.once, x.bytes = true, bytes.Clone(s.Bytes)
	if generation(s.Kind) != was {
		return mrcache.ErrRemapped
	}
	x.Handle, err = x.of.cache.Register(x.bytes)
	return err
}

func generation(k memmon.Kind) uint64 {
	if k == nil {
		return 0
	}
	return k.Generation()
}

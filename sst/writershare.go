package sst

import (
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
)

// share is what the ranks of this process have to say of a step, with the memory for it:
// in one piece in the common case.
type share struct {
	cp.Contribute
	blobs [][]byte // two a rank
	where []byte   // an extent a rank
}

// shareOfOne is a share of one rank.
type shareOfOne struct {
	share
	metadata, native [1]sstmsg.Block
	attributes       [1]sstmsg.Blob
	bytes            [1]uint64
	blobs            [2][]byte
	where            [dp.ExtentSize]byte
}

// newShare returns an empty share of n ranks.
func newShare(n int) *share {
	if n == 1 {
		s := &shareOfOne{}
		s.Metadata, s.Native, s.Attributes, s.Bytes = s.metadata[:0], s.native[:0], s.attributes[:], s.bytes[:0]
		s.share.blobs, s.share.where = s.blobs[:], s.where[:]
		return &s.share
	}
	return &share{
		Contribute: cp.Contribute{Metadata: make([]sstmsg.Block, 0, n), Attributes: make([]sstmsg.Blob, n), Bytes: make([]uint64, 0, n)},
		blobs:      make([][]byte, 2*n), where: make([]byte, n*dp.ExtentSize),
	}
}

// block makes a block of b, which is blob i.
func (s *share) block(i int, b []byte) sstmsg.Block {
	if len(b) == 0 {
		return sstmsg.Block{}
	}
	s.blobs[i] = b
	return sstmsg.Block{Data: s.blobs[i : i+1 : i+1]}
}

// room returns memory to append the extents of a rank to: there is one, mostly.
func (s *share) room(rank int) []byte {
	at := rank * dp.ExtentSize
	return s.where[at : at : at+dp.ExtentSize]
}

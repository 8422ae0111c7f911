package step

import "context"

// Source gives access to the data blocks of one step: what the writer ranks
// stored, addressed by rank and byte offset. A file or a data plane implements
// it.
type Source interface {
	// Read fills the Dst of every piece completely, or fails. The pieces come
	// sorted by rank and offset; their Dst do not overlap. An implementation
	// may work on several pieces at a time, and must be done with all of them
	// when it returns. It is called from several goroutines at a time.
	Read(ctx context.Context, pieces []Piece) error
}

// Piece asks for the len(Dst) bytes at Offset of a rank's data block. Dst is
// never empty.
type Piece struct {
	Rank   int
	Offset uint64
	Dst    []byte
}

// Viewer is what a [Source] implements beside Read when it can hand out the
// writer's memory itself.
type Viewer interface {
	// View returns n bytes at offset of a rank's data block. They are
	// read-only, and stay valid until release is called, even if the step ends
	// before; release is called exactly once. An error that wraps [ErrNoView]
	// means that this range cannot be viewed, but read. It is called from
	// several goroutines at a time.
	View(ctx context.Context, rank int, offset, n uint64) (b []byte, release func(), err error)
}

// Holder is what a [Source] implements beside Read when data may lie in the memory
// of this process already, or come there without being asked for: then they are
// copied from there to where they belong, and not put together in between.
type Holder interface {
	// Held returns n bytes at offset of a rank's data block, to be read until
	// release is called, exactly once. It may wait for them. nil without an error
	// means that this range is to be had by Read. n is never 0. It is called from
	// several goroutines at a time.
	Held(ctx context.Context, rank int, offset, n uint64) (b []byte, release func(), err error)
}

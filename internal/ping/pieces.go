package ping

import "context"

// piece is how much memory is worked on, in bytes, before a look at whether that is to end.
const piece = 16 << 20

// pieces calls work with one part of n bytes after the other. Whoever prepares or compares a GiB is at work, not waiting, and can be stopped.
func (e *end) pieces(ctx context.Context, n int, work func(from, to int)) error {
	for from := 0; from < n; from += piece {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		work(from, min(from+piece, n))
		e.watch.moved()
	}
	return nil
}

// newReference is newReference piece by piece.
func (r *run) newReference(ctx context.Context) (reference, error) {
	b := make(reference, r.Size)
	return b, r.pieces(ctx, len(b), func(from, to int) { fillFrom(b[from:to], from) })
}

package cli

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/step"
)

const (
	// chunkBytes bounds the memory for the elements of one variable.
	chunkBytes = 8 << 20
	// wholeBytes is the same for compressed variables: each chunk would
	// decompress its blocks again.
	wholeBytes = 512 << 20
)

// selection is what is read of a variable: a box of the array, or of one block.
type selection struct {
	block *int // nil: the array
	box   step.Box
}

// reader reads elements in chunks and hands them over as text.
type reader struct {
	style style
	// element takes the text of one element; it is valid during the call.
	element func(text []byte) error
	text    []byte
}

// read reads what sel selects, in row-major order, and returns the number of
// elements that no block holds.
func (r *reader) read(ctx context.Context, v *step.Variable, sel selection) (missing uint64, err error) {
	switch v.Type() {
	case step.Int8:
		return readChunks[int8](ctx, r, v, sel)
	case step.Int16:
		return readChunks[int16](ctx, r, v, sel)
	case step.Int32:
		return readChunks[int32](ctx, r, v, sel)
	case step.Int64:
		return readChunks[int64](ctx, r, v, sel)
	case step.Uint8:
		return readChunks[uint8](ctx, r, v, sel)
	case step.Uint16:
		return readChunks[uint16](ctx, r, v, sel)
	case step.Uint32:
		return readChunks[uint32](ctx, r, v, sel)
	case step.Uint64:
		return readChunks[uint64](ctx, r, v, sel)
	case step.Float32:
		return readChunks[float32](ctx, r, v, sel)
	case step.Float64:
		return readChunks[float64](ctx, r, v, sel)
	case step.LongDouble:
		return readChunks[step.Float80](ctx, r, v, sel)
	case step.Complex64:
		return readChunks[complex64](ctx, r, v, sel)
	case step.Complex128:
		return readChunks[complex128](ctx, r, v, sel)
	case step.CharType:
		return readChunks[step.Char](ctx, r, v, sel)
	case step.String:
		return readChunks[string](ctx, r, v, sel)
	case step.Struct:
		return readStructs(ctx, r, v, sel)
	}
	return 0, fmt.Errorf("variable %q: elements of %v cannot be shown", v.Name(), v.Type())
}

func readChunks[T step.Element](ctx context.Context, r *reader, v *step.Variable, sel selection) (missing uint64, err error) {
	tv, err := step.As[T](v)
	if err != nil {
		return 0, err
	}
	put := appender[T](r.style)
	var buf []T
	err = chunks(v, sel.box, func(box step.Box, n int) error {
		if cap(buf) < n {
			buf = make([]T, n)
		}
		clear(buf[:n])
		var holes uint64
		vals, err := tv.Get(ctx, step.Selection{Box: box, Block: sel.block, Missing: &holes}, buf[:n])
		if err != nil {
			return err
		}
		missing += holes
		for _, val := range vals {
			r.text = put(r.text[:0], val)
			if err := r.element(r.text); err != nil {
				return err
			}
		}
		return nil
	})
	return missing, err
}

func readStructs(ctx context.Context, r *reader, v *step.Variable, sel selection) (missing uint64, err error) {
	st := v.StructType()
	if st == nil {
		return 0, fmt.Errorf("variable %q: the writer did not describe the struct", v.Name())
	}
	var buf []byte
	err = chunks(v, sel.box, func(box step.Box, n int) error {
		if cap(buf) < n*st.Size {
			buf = make([]byte, n*st.Size)
		}
		clear(buf[:n*st.Size])
		var holes uint64
		if err := v.Read(ctx, step.Selection{Box: box, Block: sel.block, Missing: &holes}, buf[:n*st.Size]); err != nil {
			return err
		}
		missing += holes
		for i := range n {
			r.text = appendStruct(r.text[:0], st, buf[i*st.Size:][:st.Size], r.style)
			if err := r.element(r.text); err != nil {
				return err
			}
		}
		return nil
	})
	return missing, err
}

// chunks cuts a box, which must be explicit, into boxes of bounded size in
// row-major order, and gives each with its number of elements.
func chunks(v *step.Variable, box step.Box, do func(box step.Box, n int) error) error {
	total, err := box.Elements()
	if err != nil || total == 0 {
		return err
	}
	limit := chunkBytes
	if v.OperatorPresent() {
		limit = wholeBytes
	}
	most := max(1, limit/max(1, v.ElemSize()))
	// Everything behind dimension d fits one chunk; d itself is cut.
	d, inner := len(box.Count), 1
	for d > 0 {
		d--
		if uint64(inner)*box.Count[d] > uint64(most) {
			break
		}
		inner *= int(box.Count[d])
	}
	if inner == total {
		return do(box, total)
	}
	return cut(box, d, max(1, uint64(most/inner)), inner, do)
}

// cut goes through the indexes of the dimensions before d, and through d in
// steps of rows.
func cut(box step.Box, d int, rows uint64, inner int, do func(box step.Box, n int) error) error {
	sub := step.Box{Start: append([]uint64(nil), box.Start...), Count: append([]uint64(nil), box.Count...)}
	if len(sub.Start) == 0 {
		sub.Start = make([]uint64, len(sub.Count))
	}
	start := append([]uint64(nil), sub.Start...)
	for i := range d {
		sub.Count[i] = 1
	}
	for {
		for at := uint64(0); at < box.Count[d]; at += rows {
			sub.Start[d], sub.Count[d] = start[d]+at, min(rows, box.Count[d]-at)
			if err := do(sub, int(sub.Count[d])*inner); err != nil {
				return err
			}
		}
		i := d - 1
		for ; i >= 0; i-- {
			if sub.Start[i]++; sub.Start[i] < start[i]+box.Count[i] {
				break
			}
			sub.Start[i] = start[i]
		}
		if i < 0 {
			return nil
		}
	}
}

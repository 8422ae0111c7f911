package step

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// boundedSource has no data beyond its size, as a real one.
type boundedSource struct{ size uint64 }

func (b boundedSource) Read(_ context.Context, pieces []Piece) error {
	for _, p := range pieces {
		if uint64(len(p.Dst)) > b.size || p.Offset > b.size-uint64(len(p.Dst)) {
			return io.ErrUnexpectedEOF
		}
		clear(p.Dst)
	}
	return nil
}

// exercise uses everything that a step offers.
func exercise(s *Step) {
	ctx := context.Background()
	for _, v := range s.Variables() {
		_, _, _ = v.Err(), v.DeclaredShape(), v.Expression()
		v.Bounds()
		v.StructType()
		blocks := v.Blocks()
		for i := range min(len(blocks), 4) {
			_, _ = v.Any(ctx, BlockIndex(i))
			_, _ = v.ReadBlockRaw(ctx, i)
		}
		_, _ = v.Any(ctx, All)
		var sel Selection
		for _, n := range v.Shape() {
			sel.Box.Start, sel.Box.Count = append(sel.Box.Start, n/2), append(sel.Box.Count, n-n/2)
		}
		sel.Missing = new(uint64)
		_, _ = v.Any(ctx, sel)
	}
	for _, a := range s.Attributes() {
		a.Value()
	}
	_ = s.End()
}

// FuzzDecoderStep feeds formats and records of every kind. The input is a list
// of parts, each with a length of two bytes in front: 'f' and a format; 'a' or
// 'm', the number of one of the formats, and an attribute record or the metadata
// record of a rank. The ids are set here: nobody guesses a hash.
func FuzzDecoderStep(f *testing.F) {
	for _, name := range bpfixture.Names() {
		d := openDataset(f, name)
		for _, fs := range d.steps {
			if in := join(fuzzParts(d, fs)); len(in) < 1<<15 {
				f.Add(in, d.header.ColumnMajor)
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, columnMajor bool) {
		dec := NewDecoder(DecoderConfig{ColumnMajor: columnMajor, MaxAlloc: 1 << 20})
		var ids []ffs.ID
		var metas [][]byte
		for len(in) >= 2 {
			n := min(int(binary.LittleEndian.Uint16(in)), len(in)-2)
			part := slices.Clone(in[2 : 2+n])
			in = in[2+n:]
			if len(part) > 1 && part[0] == 'f' {
				ids = append(ids, ffs.IDOf(part[1:]))
				_ = dec.AddFormat(ids[len(ids)-1], part[1:])
			}
			if len(part) < 2+ffs.IDLen || len(ids) == 0 || part[0] == 'f' {
				continue
			}
			copy(part[2:], ids[int(part[1])%len(ids)][:])
			if part[0] == 'a' {
				_ = dec.AddAttributes(part[2:])
			} else {
				metas = append(metas, part[2:])
			}
		}
		if s, err := dec.Step(0, metas, boundedSource{1 << 16}, nil); err == nil {
			exercise(s)
		}
	})
}

// fuzzParts turns a step of a dataset into an input.
func fuzzParts(d *dataset, fs fileStep) [][]byte {
	var parts [][]byte
	number := map[ffs.ID]byte{}
	for _, e := range d.formats {
		number[e.ID] = byte(len(parts))
		parts = append(parts, append([]byte{'f'}, e.Description...))
	}
	for _, rec := range fs.attrs {
		if len(rec) > 0 {
			parts = append(parts, append([]byte{'a', number[formatID(rec)]}, rec...))
		}
	}
	for _, rec := range fs.meta {
		parts = append(parts, append([]byte{'m', number[formatID(rec)]}, rec...))
	}
	return parts
}

func join(parts [][]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(p)))
		out = append(out, p...)
	}
	return out
}

// Every truncated record of every dataset is an error or a smaller step.
func TestTruncatedRecords(t *testing.T) {
	for _, name := range []string{"main-shapes-3ranks", "v2.10.2-types", "main-attrs", "v2.10.2-attrs-oldstyle", "main-nullop", "main-struct"} {
		d := openDataset(t, name)
		dec := d.decoder(t)
		fs := d.steps[0]
		for n := range fs.meta[0] {
			recs := append([][]byte{fs.meta[0][:n]}, fs.meta[1:]...)
			if s, err := dec.Step(0, recs, boundedSource{1 << 16}, nil); err == nil {
				exercise(s)
				if n > 0 && n < len(fs.meta[0])-7 {
					t.Errorf("%s: %d of %d bytes accepted", name, n, len(fs.meta[0]))
				}
			}
		}
		for _, rec := range fs.attrs {
			for n := range rec {
				if err := dec.AddAttributes(rec[:n]); err == nil && n < len(rec)-7 {
					t.Errorf("%s: %d of %d bytes of attributes accepted", name, n, len(rec))
				}
			}
		}
	}
}

// Every changed byte of a record is handled, whatever comes of it.
func TestChangedRecords(t *testing.T) {
	for _, name := range []string{"main-nullop", "v2.10.2-shapes-columnmajor"} {
		d := openDataset(t, name)
		for _, fs := range d.steps[:1] {
			for i := range fs.meta[0] {
				for _, x := range []byte{1 << (i % 8), 0xff} {
					rec := append([]byte(nil), fs.meta[0]...)
					rec[i] ^= x
					dec := NewDecoder(DecoderConfig{MaxAlloc: 1 << 20, ColumnMajor: d.header.ColumnMajor})
					for _, f := range d.formats {
						if err := dec.AddFormat(f.ID, f.Description); err != nil {
							t.Fatal(err)
						}
					}
					if s, err := dec.Step(0, append([][]byte{rec}, fs.meta[1:]...), boundedSource{1 << 16}, nil); err == nil {
						exercise(s)
					}
				}
			}
		}
	}
}

// A type code that is not known is listed, with its blocks, and not read.
func TestUnknownTypeCode(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	meta, data := s.record([]put{array[float64]("x", dims{2}, blockOf(dims{0}, dims{2}, 1.0, 2)), value("y", bp5.GlobalValue, 1.5)})
	f := s.dec.formats[formatID(meta)].ffs
	for _, name := range []string{"BPG_8_99_x", "BPG_4_10_x", "BPG_8_14_x", "BPG_8_0_x"} {
		g := renamed(t, f, "BPG_8_10_x", name)
		if err := s.dec.AddFormat(g.ID(), g.Body()); err != nil {
			t.Fatal(err)
		}
		id := g.ID()
		copy(meta, id[:])
		st, err := s.dec.Step(0, [][]byte{meta}, &memSource{data: [][]byte{data}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, st, "y", 1.5)
		x, ok := st.Variable("x")
		if !ok || x.NumBlocks() != 1 || len(x.Shape()) != 1 {
			t.Errorf("%s: not described", name)
		}
		wantUnreadable(t, x)
	}
}

func formatID(rec []byte) ffs.ID { return ffs.ID(rec[:ffs.IDLen]) }

// renamed returns the format with another name for one field of the top struct.
func renamed(t *testing.T, f *ffs.Format, from, to string) *ffs.Format {
	t.Helper()
	structs := slices.Clone(f.Structs())
	structs[0].Fields = slices.Clone(structs[0].Fields)
	for i := range structs[0].Fields {
		if structs[0].Fields[i].Name == from {
			structs[0].Fields[i].Name = to
		}
	}
	g, err := ffs.New(structs...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wantUnreadable(t *testing.T, v *Variable) {
	t.Helper()
	if err := v.Err(); !errors.Is(err, ErrUnreadable) {
		t.Errorf("Err: %v", err)
	}
	if _, err := v.Any(t.Context(), All); !errors.Is(err, ErrUnreadable) {
		t.Errorf("Any: %v", err)
	}
	if _, err := v.ReadBlockRaw(t.Context(), 0); !errors.Is(err, ErrUnreadable) {
		t.Errorf("ReadBlockRaw: %v", err)
	}
}

package step

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/bp5"

	_ "github.com/weft-fabric/weft/operator/bzip2"
	_ "github.com/weft-fabric/weft/operator/png"
)

// dataset is a BP5 folder in memory, opened in the plainest way.
type dataset struct {
	name    string
	files   map[string][]byte
	header  bp5.IndexHeader
	formats []bp5.FormatEntry
	steps   []fileStep
}

type fileStep struct {
	writers     bp5.WriterMap
	index       bp5.StepIndex
	meta, attrs [][]byte
}

func openDataset(t testing.TB, name string) *dataset {
	t.Helper()
	d := &dataset{name: name, files: bpfixture.Files(t, name)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var err error
	idx := d.files["md.idx"]
	d.header, err = bp5.ParseIndexHeader(idx)
	must(err)
	d.formats, _, err = bp5.ParseMMD(d.files["mmd.0"])
	must(err)
	var writers bp5.WriterMap
	for idx = idx[bp5.IndexHeaderSize:]; len(idx) > 0; {
		rec, n, err := bp5.ParseIndexRecord(idx, int(writers.Writers))
		must(err)
		idx = idx[n:]
		switch rec := rec.(type) {
		case bp5.WriterMap:
			writers = rec
		case bp5.StepIndex:
			fs := fileStep{writers: writers, index: rec}
			fs.meta, fs.attrs, err = bp5.ParseStepMeta(d.files["md.0"][rec.MetaPos:][:rec.MetaLen], int(writers.Writers))
			must(err)
			d.steps = append(d.steps, fs)
		}
	}
	return d
}

// decoder returns a decoder that knows the formats.
func (d *dataset) decoder(t testing.TB) *Decoder {
	t.Helper()
	dec := NewDecoder(DecoderConfig{ColumnMajor: d.header.ColumnMajor})
	for _, f := range d.formats {
		if err := dec.AddFormat(f.ID, f.Description); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
	}
	return dec
}

// decode makes all steps.
func (d *dataset) decode(t testing.TB) []*Step {
	t.Helper()
	dec := d.decoder(t)
	var steps []*Step
	for i, fs := range d.steps {
		for _, rec := range fs.attrs {
			if len(rec) == 0 {
				continue
			}
			if err := dec.AddAttributes(rec); err != nil {
				t.Fatalf("%s: step %d: %v", d.name, i, err)
			}
		}
		s, err := dec.Step(uint64(i), fs.meta, &fileSource{d: d, step: i}, nil)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		steps = append(steps, s)
	}
	return steps
}

// fileSource reads pieces as docs/wire/bp5.md §3.1 says.
type fileSource struct {
	d      *dataset
	step   int
	pieces atomic.Int64
	bytes  atomic.Int64
}

func (s *fileSource) Read(_ context.Context, pieces []Piece) error {
	for _, p := range pieces {
		s.pieces.Add(1)
		s.bytes.Add(int64(len(p.Dst)))
		if err := s.read(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *fileSource) read(p Piece) error {
	fs := &s.d.steps[s.step]
	file := s.d.files[fmt.Sprintf("data.%d", fs.writers.Subfile[p.Rank])]
	off, dst := p.Offset, p.Dst
	for _, piece := range fs.index.Pieces[p.Rank] {
		if len(dst) == 0 {
			return nil
		}
		if off >= piece.Size {
			off -= piece.Size
			continue
		}
		n := min(uint64(len(dst)), piece.Size-off)
		if piece.Pos+off+n > uint64(len(file)) {
			return io.ErrUnexpectedEOF
		}
		copy(dst, file[piece.Pos+off:][:n])
		dst, off = dst[n:], 0
	}
	if len(dst) > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

package sstmsg

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// drawStep draws a TimestepMetadata, ordinary or not: its arrays may disagree with the
// cohort, blocks may be large, and formats come along.
func drawStep(t *rapid.T, o Options) *TimestepMetadata {
	m := &TimestepMetadata{}
	variant := variant{release: o.Release, plane: "evpath", weft: o.Weft}
	fillAny(t, reflect.ValueOf(m).Elem(), variant, rapid.IntRange(0, 5).Draw(t, "blocks"))
	m.CohortSize = int32(len(m.Metadata))
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0: // formats, as drawn
	case 1:
		m.CohortSize++
	case 2:
		m.Attributes = nil
	case 3:
		m.Metadata, m.Formats = nil, nil
		m.CohortSize = int32(len(m.Attributes))
	case 4:
		m.Step, m.Formats = 1<<40, nil
	case 5:
		m.Metadata, m.Formats = append(m.Metadata, Block{Data: Blob{make([]byte, smallBlob), {1}}}), nil
	default:
		m.Formats = nil
	}
	return m
}

// TestStepBytes: the record of a step has the same bytes as the builder's, and fails
// where that fails.
func TestStepBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Release: Release(rapid.IntRange(0, 2).Draw(t, "release")), Weft: rapid.Bool().Draw(t, "weft")}
		m := drawStep(t, o)
		c, err := compileFor(m, o)
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := c.build(reflect.ValueOf(m).Elem()).Buffers(smallBlob)
		f, got, gotErr := Encode(m, o)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("builder: %v; in one go: %v", wantErr, gotErr)
		}
		rec := bytes.Join(got, nil)
		if !bytes.Equal(bytes.Join(want, nil), rec) {
			t.Fatalf("\n% x\n% x", want, got)
		}
		if gotErr == nil {
			if err := sameStep(f, rec); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// sameStep returns an error unless a record is the same message by both ways. It may be
// anything.
func sameStep(f *ffs.Format, rec []byte) error {
	p, err := planOf(f)
	if err != nil {
		return err
	}
	r, _, err := f.Record(rec)
	if err != nil {
		return nil //nolint:nilerr // it is no record
	}
	got, ok := p.step.read(r.Top(), len(rec))
	if !ok {
		return nil
	}
	want, budget := &TimestepMetadata{}, len(rec)
	if err := p.top.read(r.Top(), reflect.ValueOf(want).Elem(), &budget); err != nil {
		return fmt.Errorf("read, although: %w", err)
	}
	if d := cmp.Diff(want, got, cmp.Transformer("bytes", Blob.Bytes)); d != "" {
		return errors.New(d)
	}
	return nil
}

// TestStepIsOrdinary: what every step looks like takes the short way.
func TestStepIsOrdinary(t *testing.T) {
	for _, o := range []Options{{Release: Release210}, {Release: Release212}, {Release: ReleaseMain, Weft: true}} {
		for _, ranks := range []int{1, 2, 7} {
			m := &TimestepMetadata{
				ReaderID: 5, Step: 3, CohortSize: int32(ranks), PreloadMode: 1,
				Metadata: make([]Block, ranks), Attributes: make([]Block, ranks),
			}
			if o.Weft {
				m.Native = make([]Block, ranks)
			}
			for i := range ranks {
				m.Metadata[i].Data = ByteBlob(bytes.Repeat([]byte{byte(i)}, 17+i))
			}
			c, err := compileFor(m, o)
			if err != nil {
				t.Fatal(err)
			}
			parts, ok := c.step.encode(m)
			if !ok {
				t.Fatalf("%+v, %d ranks: not encoded", o, ranks)
			}
			r, _, err := c.format.Record(parts[0])
			if err != nil {
				t.Fatal(err)
			}
			p, err := planOf(c.format)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := p.step.read(r.Top(), len(parts[0]))
			if !ok {
				t.Fatalf("%+v, %d ranks: not read", o, ranks)
			}
			if d := cmp.Diff(m, got, canonical); d != "" {
				t.Error(d)
			}
		}
	}
}

// FuzzStep: whatever a record holds, the short way reads what the other one does, or
// leaves it to that.
func FuzzStep(f *testing.F) {
	for _, m := range []*TimestepMetadata{
		{Step: 1, CohortSize: 1, Metadata: []Block{{Data: ByteBlob([]byte("records"))}}, Attributes: []Block{{}}, Native: []Block{{Data: ByteBlob([]byte("extents"))}}},
		{Step: 2, CohortSize: 3, Metadata: make([]Block, 3), Attributes: make([]Block, 3)},
		{Step: 3, CohortSize: 1, Formats: []FormatBlock{{ID: ByteBlob(make([]byte, 12)), Body: ByteBlob([]byte("f"))}}, Attributes: []Block{{}}},
	} {
		_, rec, err := Append(nil, m, Options{Release: ReleaseMain, Weft: true})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(rec[ffs.IDLen:])
	}
	c, err := compileFor(&TimestepMetadata{}, Options{Release: ReleaseMain, Weft: true})
	if err != nil {
		f.Fatal(err)
	}
	id := c.format.ID()
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := sameStep(c.format, append(id[:], b...)); err != nil {
			t.Fatal(err)
		}
	})
}

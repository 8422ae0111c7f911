package bp5

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// What was parsed may be used by any number of goroutines, from the first use
// on; the race detector has the last word.
func TestConcurrentReaders(t *testing.T) {
	steps, formats := realSteps(t, "main-shapes-3ranks")
	schemas := map[ffs.ID]*Schema{}
	for id, f := range formats {
		if s, err := ParseSchema(f); err == nil {
			schemas[id] = s
		}
	}
	var records []*Metadata
	for _, st := range steps {
		for _, rec := range st.meta {
			id, _ := ffs.RecordID(rec)
			m, err := schemas[id].Metadata(rec)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, m)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for _, m := range records {
					touch(m)
				}
				for _, st := range steps {
					for _, rec := range st.attrs {
						if id, ok := ffs.RecordID(rec); ok {
							if _, _, err := ParseAttributes(formats[id], rec); err != nil {
								t.Error(err)
							}
						}
					}
				}
				if _, err := GenericAttributesFormat(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Parsing leaves the bytes as they are: they may be in a read-only mapping, or
// be another reader's too.
func TestParsingWritesNothing(t *testing.T) {
	eachRealStep(t, func(st realStep, formats map[ffs.ID]*ffs.Format) {
		for _, rec := range slices.Concat(st.meta, st.attrs) {
			if len(rec) == 0 {
				continue
			}
			before := string(rec)
			use(formats, rec)
			if string(rec) != before {
				t.Fatalf("%s: the record has changed", st.name)
			}
		}
	})
}

// Errors say which package found what, and are told apart by identity.
func TestErrors(t *testing.T) {
	_, full := ParseIndexHeader(make([]byte, IndexHeaderSize))
	_, cut := ParseIndexHeader([]byte("ADIOS-BP v2"))
	_, _, record := ParseIndexRecord(slices.Concat([]byte{'s'}, make([]byte, 100)), 0)
	_, _, mmd := ParseMMD(slices.Repeat([]byte{0xff}, 40))
	_, _, meta := ParseStepMeta(make([]byte, 4), 1)
	_, at := AppendRanges(nil, nil, 0, 1)
	_, field := ParseFieldName("BPX_1")
	_, _, attrs := ParseAttributes(mustFormat(t), nil)
	for name, tc := range map[string]struct {
		err  error
		want error
	}{
		"header":         {full, ErrNotBP},
		"short header":   {cut, io.ErrUnexpectedEOF},
		"record":         {record, ErrBadFile},
		"mmd.0":          {mmd, ErrBadFile},
		"step metadata":  {meta, io.ErrUnexpectedEOF},
		"ranges":         {at, ErrBadFile},
		"field name":     {field, ErrBadRecord},
		"no record":      {attrs, ffs.ErrTruncated},
		"no name":        {VarDesc{Kind: GlobalValue, Type: Int8, ElemSize: 1}.Check(), ErrEncode},
		"no type":        {Attr{Name: "a"}.Check(), ErrEncode},
		"old-style name": {Attr{Name: "xElemCount", Type: Int8, Data: []byte{1}}.CheckOldStyle(), ErrEncode},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.err, tc.want)
			continue
		}
		if text := tc.err.Error(); !strings.Contains(text, "bp5: ") || len(text) > 300 {
			t.Errorf("%s: text %q", name, text)
		}
	}
}

func mustFormat(t *testing.T) *ffs.Format {
	t.Helper()
	f, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

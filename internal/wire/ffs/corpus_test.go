package ffs

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The corpus is what real encoders wrote: SST sessions between ADIOS2 2.10.2
// and main (testdata/captures, one file for each connection and direction) and
// BP5 metadata of both (testdata/fixtures).
type source struct {
	name    string
	bodies  []body   // format bodies with the IDs that came with them
	records []sample // in order; their formats are among bodies
}

type body struct {
	id    ID
	bytes []byte // padding may follow the body
}

type sample struct {
	at    int // offset in its file
	bytes []byte
	exact bool // no padding behind the record
}

// formats parses all bodies of a source.
func (s *source) formats(tb testing.TB) map[ID]*Format {
	tb.Helper()
	m := map[ID]*Format{}
	for _, b := range s.bodies {
		f, _, err := Parse(b.bytes)
		if err != nil {
			tb.Fatalf("%s: format %v: %v", s.name, b.id, err)
		}
		m[b.id] = f
	}
	return m
}

// load returns the whole corpus, the blocks that travelled inside SST messages
// as sources of their own.
func load(tb testing.TB) []source {
	tb.Helper()
	var all []source
	for _, path := range glob(tb, "captures/*.bin") {
		s := splitCM(tb, path)
		all = append(all, s)
		if inner := stepBlocks(tb, &s); len(inner.bodies) > 0 {
			all = append(all, inner)
		}
	}
	for _, dir := range glob(tb, "fixtures/*") {
		all = append(all, splitBP5(tb, dir))
	}
	return all
}

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no files %s: %v", pattern, err)
	}
	return paths
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// splitCM cuts a captured connection into format pushes and records
// (docs/wire/cm.md §3 to §6).
func splitCM(tb testing.TB, path string) source {
	tb.Helper()
	s := source{name: filepath.Base(path)}
	b := read(tb, path)
	at := 0
	if strings.Contains(path, ".a2p.") {
		at = 4 // the preamble of the active side
	}
	le := binary.LittleEndian
	for at+8 <= len(b) {
		u := b[at:]
		switch magic := le.Uint32(u); {
		case magic == 0x434d4800:
			at += 20
		case magic == 0x5042494f:
			p1, p2 := int(le.Uint32(u[16:])), int(le.Uint32(u[20:]))
			p := u[24 : 24+p1+p2]
			s.bodies = append(s.bodies, body{ID(p[:p1]), p[p1:]})
			at += 24 + p1 + p2
		case magic&^0xff == 0x434d4400:
			n := int(le.Uint32(u[4:]))
			s.records = append(s.records, sample{at, u[8 : 8+n], true})
			at += 8 + n
		default:
			tb.Fatalf("%s: magic %08x at offset %d", s.name, magic, at)
		}
	}
	return s
}

// stepBlocks collects the BP5 formats and records inside the timestepMetadata
// messages of a connection.
func stepBlocks(tb testing.TB, s *source) source {
	tb.Helper()
	out := source{name: s.name + "/steps"}
	formats := s.formats(tb)
	for _, rec := range s.records {
		id, _ := RecordID(rec.bytes)
		f := formats[id]
		if f == nil || f.Name() != "timestepMetadata" {
			continue
		}
		r, _, err := f.Record(rec.bytes)
		if err != nil {
			tb.Fatalf("%s at offset %d: %v", s.name, rec.at, err)
		}
		top := r.Top()
		block, err := top.Struct(top.Index("formats"))
		for ; err == nil && !block.IsNil(); block, err = block.Struct(block.Index("Next")) {
			out.bodies = append(out.bodies, body{ID(must(block.Raw(block.Index("FormatIDRep")))), must(block.Raw(block.Index("FormatServerRep")))})
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range []string{"metadata", "attribute_data"} {
			for _, v := range must(top.Structs(top.Index(name))) {
				if p := must(v.Raw(v.Index("BlockData"))); len(p) > 0 {
					out.records = append(out.records, sample{rec.at, p, true})
				}
			}
		}
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// splitBP5 reads the metadata of a BP5 dataset, or of the blocks that an SST
// writer handed over, one file each.
func splitBP5(tb testing.TB, dir string) source {
	tb.Helper()
	s := source{name: filepath.Base(dir)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		b := read(tb, filepath.Join(dir, e.Name()))
		switch {
		case strings.HasPrefix(e.Name(), "mmd."):
			s.bodies = append(s.bodies, splitMMD(b)...)
		case e.Name() == "md.0":
			s.records = append(s.records, splitMD(tb, s.name, b)...)
		case len(b) > 0:
			s.records = append(s.records, sample{0, b, true})
		}
	}
	return s
}

// splitMMD cuts an mmd.0 file (docs/wire/bp5.md §6.5).
func splitMMD(b []byte) []body {
	var out []body
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b[8:])
		out = append(out, body{ID(b[16:28]), b[28 : 28+n]})
		b = b[28+n:]
	}
	return out
}

// splitMD cuts an md.0 file (docs/wire/bp5.md §6.4). The number of writers is
// in md.idx; here it is the first one that makes the lengths add up.
func splitMD(tb testing.TB, name string, b []byte) []sample {
	tb.Helper()
	var out []sample
	for at := 0; at < len(b); {
		total := int(binary.LittleEndian.Uint64(b[at:]))
		step := b[at+8 : at+8+total]
		sizes := writers(step)
		if sizes == nil {
			tb.Fatalf("%s: cannot split the step at offset %d", name, at)
		}
		p := 8 * len(sizes)
		for _, n := range sizes {
			if n > 0 {
				out = append(out, sample{at + 8 + p, step[p : p+n], false})
			}
			p += n
		}
		at += 8 + total
	}
	return out
}

func writers(step []byte) []int {
	for w := 1; 16*w <= len(step) && w <= 8; w++ {
		sizes, sum := make([]int, 2*w), 16*w
		for i := range sizes {
			sizes[i] = int(binary.LittleEndian.Uint64(step[8*i:]))
			sum += sizes[i]
		}
		if sum == len(step) {
			return sizes
		}
	}
	return nil
}

package ffs

import (
	"bytes"
	"testing"
)

func FuzzParse(f *testing.F) {
	seen := map[ID]bool{}
	for _, s := range load(f) {
		for _, b := range s.bodies {
			if !seen[b.id] {
				seen[b.id] = true
				f.Add(b.bytes)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, n, err := Parse(b)
		if err != nil {
			return
		}
		if n > len(b) || !bytes.Equal(g.Body(), b[:n]) || g.ID() != IDOf(b[:n]) {
			t.Fatalf("%d bytes of %d, ID %v", n, len(b), g.ID())
		}
		rebuild(t, g)
		if g.Structs()[0].RecordLen > 1<<16 {
			return
		}
		rec, err := g.NewRecord().Append(nil)
		if err != nil {
			t.Fatalf("an empty record: %v", err)
		}
		r, size, err := g.Record(rec)
		if err != nil || size != len(rec) {
			t.Fatalf("%d bytes of %d, %v", size, len(rec), err)
		}
		walk(t, r.Top(), new(int), 0)
	})
}

// rebuild checks that the descriptions of a format that New accepts lead to the
// same descriptions again.
func rebuild(t *testing.T, g *Format) {
	t.Helper()
	built, err := New(g.Structs()...)
	if err != nil {
		return // New is stricter about names
	}
	again, n, err := Parse(built.Body())
	if err != nil || n != len(built.Body()) || again.ID() != built.ID() {
		t.Fatalf("what New has built: %d bytes of %d, %v", n, len(built.Body()), err)
	}
	for i, s := range again.Structs() {
		want := built.Structs()[i]
		if s.Name != want.Name || s.RecordLen != want.RecordLen || s.Align != want.Align || len(s.Fields) != len(want.Fields) {
			t.Fatalf("struct %d: %+v, want %+v", i, s, want)
		}
		for k := range s.Fields {
			if s.Fields[k] != want.Fields[k] {
				t.Fatalf("field %d: %+v, want %+v", k, s.Fields[k], want.Fields[k])
			}
		}
	}
}

func FuzzRecord(f *testing.F) {
	seen := map[ID]int{}
	for _, s := range load(f) {
		formats := s.formats(f)
		for _, rec := range s.records {
			id, _ := RecordID(rec.bytes)
			if seen[id]++; seen[id] <= 2 {
				f.Add(formats[id].Body(), rec.bytes)
			}
		}
	}
	tree := treeFormat(f)
	f.Add(tree.Body(), variant(tree, append(words(2, 24, 0, 40, 40), words(0, 0, 0)...)))
	f.Fuzz(func(t *testing.T, body, rec []byte) {
		g, _, err := Parse(body)
		if err != nil {
			return
		}
		rec = bytes.Clone(rec)
		id := g.ID()
		copy(rec, id[:])
		r, n, err := g.Record(rec)
		if err != nil {
			return
		}
		if n > len(rec) {
			t.Fatalf("%d bytes of %d", n, len(rec))
		}
		work := 0
		walk(t, r.Top(), &work, 0)
		if most := (reuse + 1) * 2 * n; work > most {
			t.Fatalf("%d bytes can be reached in a record of %d", work, n)
		}
		reencode(t, g, r)
		for i := 0; i < n; i += 1 + n/16 { // what repeats needs no check
			other := bytes.Clone(rec)
			other[i] ^= byte(1 + i%255)
			if again, ok := r.Repeat(other); ok {
				checked, _, err := g.Record(other)
				if err != nil || !bytes.Equal(again.body, checked.body) {
					t.Fatalf("byte %d changed: it repeats, but %v", i, err)
				}
			}
		}
	})
}

// reencode checks that a copy of a record is a valid record, and that copying
// that gives the same bytes.
func reencode(t *testing.T, g *Format, r Record) {
	t.Helper()
	once := encodeCopy(t, r)
	again, n, err := g.Record(once)
	if err != nil || n != len(once) {
		t.Fatalf("the copy: %d bytes of %d, %v", n, len(once), err)
	}
	if twice := encodeCopy(t, again); !bytes.Equal(once, twice) {
		t.Fatalf("the copy of the copy differs:\n% x\n% x", once, twice)
	}
}

func encodeCopy(t *testing.T, r Record) []byte {
	t.Helper()
	b, err := r.Builder()
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// walk reads everything that can be reached from v and adds up its bytes. No
// method may fail on a field that it fits.
func walk(t *testing.T, v View, work *int, depth int) {
	t.Helper()
	if depth > 1<<16 {
		return
	}
	for i := range v.NumFields() {
		typ := v.Type(i)
		switch {
		case typ.Kind == Substruct:
			list, err := v.Structs(i)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				*work += 8
				walk(t, s, work, depth+1)
			}
		case typ.Kind == String && len(typ.Dims) == 0:
			s, _, err := v.Text(i)
			if err != nil {
				t.Fatal(err)
			}
			*work += len(s)
		case typ.Kind == String:
			list, err := v.Texts(i)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				*work += len(s)
			}
		default:
			p, err := v.Raw(i)
			if err != nil {
				t.Fatal(err)
			}
			*work += len(p)
		}
	}
}

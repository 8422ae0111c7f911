package ffs

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
)

// Whatever is wrong in a real record, it is refused or can be read to its end.
func TestHostileRecords(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	seen := map[ID]bool{}
	refused, taken := 0, 0
	for _, s := range load(t) {
		formats := s.formats(t)
		for _, rec := range s.records {
			id, _ := RecordID(rec.bytes)
			f := formats[id]
			if seen[id] {
				continue
			}
			seen[id] = true
			for range 200 {
				r, n, err := f.Record(damage(rnd, f, rec.bytes))
				if err != nil {
					refused++
					continue
				}
				taken++
				work := 0
				walk(t, r.Top(), &work, 0)
				if work > 2*(reuse+1)*n {
					t.Fatalf("%s: %d bytes can be reached in a record of %d", s.name, work, n)
				}
				reencode(t, f, r)
			}
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d refused, %d taken: the damage is of one sort only", refused, taken)
	}
}

// damage changes a few words behind the header to values that are likely to
// hurt: small ones, offsets within the record, and the largest.
func damage(rnd *rand.Rand, f *Format, rec []byte) []byte {
	bad := edit(rec, 0)
	head := shortHeader
	if f.Variant() {
		head = longHeader
	}
	words := (len(bad) - head) / 8
	for range 1 + rnd.IntN(3) {
		at := head + 8*rnd.IntN(words)
		v := rnd.Uint64() >> rnd.IntN(64)
		if rnd.IntN(2) == 0 {
			v = uint64(rnd.IntN(len(bad)))
		}
		binary.LittleEndian.PutUint64(bad[at:], v)
	}
	return bad
}

// Formats and records may be read by any number of goroutines; the race
// detector has the last word.
func TestConcurrentReaders(t *testing.T) {
	f := zoo(t)
	rec := must(fillZoo(f).Append(nil))
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				walk(t, r.Top(), new(int), 0)
				if again := must(fillZoo(f).Append(nil)); len(again) != len(rec) {
					t.Error("another record")
				}
				if _, _, err := f.Record(rec); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Reading must leave the record as it is: it may lie in a read-only mapping.
func TestReadingWritesNothing(t *testing.T) {
	for _, s := range load(t)[:8] {
		formats := s.formats(t)
		for _, rec := range s.records {
			id, _ := RecordID(rec.bytes)
			before := string(rec.bytes)
			r, _, err := formats[id].Record(rec.bytes)
			if err != nil {
				t.Fatal(err)
			}
			walk(t, r.Top(), new(int), 0)
			encodeCopy(t, r)
			if string(rec.bytes) != before {
				t.Fatalf("%s at offset %d: the record has changed", s.name, rec.at)
			}
		}
	}
}

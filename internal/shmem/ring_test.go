package shmem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// ring is both sides in one place.
type ring struct {
	*Producer
	*Consumer
	memory     []byte
	creditWord *atomic.Uint64
}

func newRing(t testing.TB, size int, c RingConfig) ring {
	t.Helper()
	mem, credit := private(t, size), new(atomic.Uint64)
	p, err := NewProducer(mem, credit, c)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewConsumer(mem, credit, c)
	if err != nil {
		t.Fatal(err)
	}
	return ring{p, q, mem.bytes, credit}
}

func TestRecord(t *testing.T) {
	r := Record(Bytes(make([]uint64, 3))[:20])
	for i := -1; i < 4; i++ {
		r.Store(i, uint64(i)+100)
	}
	for i, want := range map[int]uint64{-1: 0, 0: 100, 1: 101, 2: 0, 3: 0} {
		if got := r.Load(i); got != want {
			t.Errorf("word %d: %d", i, got)
		}
	}
	for words, want := range map[int]int{-1: 0, 0: 20, 1: 12, 2: 4, 3: 0, 1 << 20: 0} {
		if got := r.Payload(words); len(got) != want || cap(got) > cap(r) {
			t.Errorf("after %d words: %d bytes", words, len(got))
		}
	}
}

func TestRingConfig(t *testing.T) {
	for body, want := range map[int]int{0: 64, 56: 64, 57: 128, 4096: 4160} {
		if got := RecordSize(body); got != want {
			t.Errorf("body of %d: %d", body, got)
		}
	}
	if n := (RingConfig{MaxBody: 4096}).RingSize(0); n != 32768 {
		t.Error(n)
	}
	if n := (RingConfig{MaxBody: 4096}).RingSize(65536); n != 65536 {
		t.Error(n)
	}
	if n := (RingConfig{}).RingSize(1025); n != 2048 {
		t.Error(n)
	}
	credit := new(atomic.Uint64)
	for _, c := range []struct {
		size   int
		c      RingConfig
		credit *atomic.Uint64
	}{
		{1024, RingConfig{}, nil}, {1024, RingConfig{MaxBody: 300}, credit}, {1000, RingConfig{}, credit}, {512, RingConfig{}, credit},
		{1024, RingConfig{MinBody: 2, MaxBody: 1}, credit}, {1024, RingConfig{MinBody: -1}, credit}, {0, RingConfig{}, credit},
		{1024, RingConfig{MaxBody: 1<<30 + 1}, credit},
	} {
		if _, err := NewProducer(private(t, c.size), c.credit, c.c); err == nil {
			t.Errorf("producer of %d bytes, %+v", c.size, c.c)
		}
		if _, err := NewConsumer(private(t, c.size), c.credit, c.c); err == nil {
			t.Errorf("consumer of %d bytes, %+v", c.size, c.c)
		}
	}
	if _, err := NewProducer(Region{make([]byte, 1024), false}, credit, RingConfig{}); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
}

func TestRing(t *testing.T) {
	r := newRing(t, 1024, RingConfig{MaxBody: 200})
	if got, err := r.Peek(); got != nil || err != nil || !r.Empty() {
		t.Error(got, err)
	}
	if r.Publish() || r.Pending() || r.Flush() || r.Advance() {
		t.Error("something was done with nothing")
	}
	r.Commit() // of nothing
	for _, text := range []string{"", "a", strings.Repeat("b", 192)} {
		rec, err := r.Reserve(8 + len(text))
		if err != nil || len(rec) != 8+len(text) {
			t.Fatal(err)
		}
		rec.Store(0, 42)
		copy(rec.Payload(1), text)
		r.Commit()
	}
	if got, err := r.Peek(); got != nil || err != nil || !r.Pending() {
		t.Error("seen before it was published", got, err)
	}
	if !r.Publish() || r.Publish() || r.Pending() {
		t.Error("publish")
	}
	for _, text := range []string{"", "a", strings.Repeat("b", 192)} {
		for range 2 { // a peek takes nothing
			if got, err := r.Peek(); err != nil || got.Load(0) != 42 || string(got.Payload(1)) != text {
				t.Error(got, err)
			}
		}
		r.Advance()
	}
	if got, err := r.Peek(); got != nil || err != nil {
		t.Error(got, err)
	}
	if n, err := r.Outstanding(); n != 64+128+256 && n != 0 || err != nil {
		t.Error(n, err)
	}
	r.Flush()
	if n, err := r.Outstanding(); n != 0 || err != nil {
		t.Error(n, err)
	}
	if rec, err := r.Reserve(0); rec == nil || err != nil {
		t.Error(rec, err)
	}
	r.Commit()
	r.Publish()
	if got, err := r.Peek(); got == nil || len(got) != 0 || err != nil {
		t.Error("an empty record", got, err)
	}
	for _, n := range []int{-1, 201} {
		if _, err := r.Reserve(n); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
	}
}

// TestRingFull fills a ring: one slot stays free, and room comes back with the credit.
func TestRingFull(t *testing.T) {
	r := newRing(t, 1024, RingConfig{MaxBody: 200})
	n := 0
	for {
		rec, err := r.Reserve(8)
		if errors.Is(err, ErrFull) {
			break
		}
		rec.Store(0, uint64(n))
		r.Commit()
		n++
	}
	if n != 15 {
		t.Errorf("%d records", n)
	}
	r.Publish()
	credits := 0
	for i := range n {
		rec, err := r.Peek()
		if err != nil || rec.Load(0) != uint64(i) {
			t.Fatal(i, rec, err)
		}
		if r.Advance() {
			credits++
		}
		_, err = r.Reserve(8)
		if room := credits > 0; (err == nil) != room {
			t.Errorf("after %d: %v", i+1, err)
		}
	}
	if credits != 3 || !r.Flush() || r.Flush() {
		t.Errorf("%d credits", credits)
	}
}

// TestRingWrap publishes records of each length at each place, so that each skip happens.
func TestRingWrap(t *testing.T) {
	const size = 1024
	for start := 0; start < size; start += slot {
		for n := 0; n <= 200; n += 8 {
			r := newRing(t, size, RingConfig{MaxBody: 200})
			for range start / slot {
				send(t, r, make([]byte, 8))
				receive(t, r)
			}
			want := bytes.Repeat([]byte{byte(n + 1)}, n)
			for range 20 {
				send(t, r, want)
				if got := receive(t, r); !bytes.Equal(got, want) {
					t.Fatalf("body of %d at %d: % x", n, start, got)
				}
			}
		}
	}
}

func send(t testing.TB, r ring, body []byte) {
	t.Helper()
	rec, err := r.Reserve(len(body))
	if err != nil {
		t.Fatal(err)
	}
	copy(rec, body)
	r.Commit()
	r.Publish()
}

func receive(t testing.TB, r ring) []byte {
	t.Helper()
	rec, err := r.Peek()
	if err != nil || rec == nil {
		t.Fatal(rec, err)
	}
	got := bytes.Clone(rec)
	r.Advance()
	r.Flush()
	return got
}

// TestRingReservedAgain gives up what was reserved, before and after a skip.
func TestRingReservedAgain(t *testing.T) {
	r := newRing(t, 1024, RingConfig{MaxBody: 200})
	for range 14 {
		send(t, r, make([]byte, 8))
		receive(t, r)
	}
	for _, n := range []int{200, 8, 150} { // 200 needs a skip
		rec, err := r.Reserve(n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rec {
			rec[i] = 0xff // nothing of it may be taken for a record
		}
	}
	if !r.Pending() || !r.Publish() {
		t.Error("the skip is a batch of its own")
	}
	r.Commit()
	if got, err := r.Peek(); got != nil || err != nil {
		t.Error(got, err)
	}
	r.Publish()
	if got, err := r.Peek(); len(got) != 150 || err != nil {
		t.Error(got, err)
	}
}

// TestRingModel compares any sequence of calls with a queue.
func TestRingModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := RingConfig{MaxBody: rapid.IntRange(0, 300).Draw(rt, "max")}
		r := newRing(t, c.RingSize(rapid.SampledFrom([]int{0, 4096}).Draw(rt, "size")), c)
		// Old content of any kind after the start, and any start of the count: the ring has been in use for long.
		laps := rapid.SampledFrom([]uint64{0, 1, 1<<26 - 1, 1 << 40}).Draw(rt, "laps")
		from := laps * uint64(len(r.memory))
		r.head, r.published, r.stored = from, from, from
		r.Producer.tail, r.Consumer.tail = from, from
		r.creditWord.Store(from)
		if laps > 0 {
			fill(r.memory[8:], rapid.Uint64().Draw(rt, "old"))
		}
		var committed, published [][]byte
		next := byte(0)
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				n := rapid.IntRange(0, c.MaxBody).Draw(rt, "n")
				rec, err := r.Reserve(n)
				if errors.Is(err, ErrFull) {
					if room(r, n) {
						rt.Fatalf("full with %d outstanding", r.head-r.stored)
					}
					return
				}
				if err != nil || len(rec) != n {
					rt.Fatal(err)
				}
				next++
				for i := range rec {
					rec[i] = next
				}
				want := bytes.Clone(rec)
				if rapid.Bool().Draw(rt, "publish before it is committed") {
					r.Publish()
					published = append(published, committed...)
					committed = nil
				}
				if rapid.Bool().Draw(rt, "commit") {
					committed = append(committed, want)
					r.Commit()
				}
			},
			"publish": func(rt *rapid.T) {
				r.Publish()
				published = append(published, committed...)
				committed = nil
			},
			"receive": func(rt *rapid.T) {
				rec, err := r.Peek()
				if err != nil || (rec == nil) != (len(published) == 0) {
					rt.Fatalf("%v, %v, %d are there", rec, err, len(published))
				}
				if rec == nil {
					return
				}
				if !bytes.Equal(rec, published[0]) {
					rt.Fatalf("% x, not % x", rec, published[0])
				}
				published = published[1:]
				r.Advance()
			},
			"flush": func(*rapid.T) { r.Flush() },
			"": func(rt *rapid.T) {
				if n, err := r.Outstanding(); err != nil || n > uint64(len(r.memory)) {
					rt.Fatal(n, err)
				}
			},
		})
	})
}

// room says whether a body of n bytes must fit: what the consumer has told it has taken leaves room even if the
// record needs a skip.
func room(r ring, n int) bool {
	free := uint64(len(r.memory)) - (r.head - r.stored)
	return free >= uint64(2*RecordSize(n)+slot)
}

func fill(b []byte, seed uint64) {
	rng := rand.NewPCG(seed, 0)
	for len(b) >= 8 {
		binary.NativeEndian.PutUint64(b, rng.Uint64())
		b = b[8:]
	}
}

// TestBadProducer shows a consumer what no producer writes.
func TestBadProducer(t *testing.T) {
	for name, w := range map[string]uint64{
		"no length":         5 << 32,
		"skip at the start": skip,
		"skip of a length":  skip | 8,
		"too short":         8,
		"too long":          202,
		"huge":              1<<32 - 1,
		"other place":       1<<32 | 17,
		"all ones":          1<<64 - 1,
	} {
		r := newRing(t, 1024, RingConfig{MinBody: 8, MaxBody: 200})
		binary.NativeEndian.PutUint64(r.memory, w)
		for range 2 {
			if rec, err := r.Peek(); !errors.Is(err, ErrProtocol) || rec != nil {
				t.Errorf("%s: %v, %v", name, rec, err)
			}
			binary.NativeEndian.PutUint64(r.memory, 0) // it stays broken
		}
		r.Advance()
		if r.Flush() {
			t.Errorf("%s: it went on", name)
		}
	}
	// A record that would reach beyond the end.
	r := newRing(t, 1024, RingConfig{MaxBody: 200})
	for range 14 {
		send(t, r, nil)
		receive(t, r)
	}
	binary.NativeEndian.PutUint64(r.memory[14*slot:], 14<<32|122)
	if rec, err := r.Peek(); !errors.Is(err, ErrProtocol) {
		t.Error(rec, err)
	}
}

// TestBadConsumer shows a producer credits that no consumer gives.
func TestBadConsumer(t *testing.T) {
	for _, credit := range []uint64{1, 64 * 17, 1 << 63, 1<<64 - 64, 63, 256, 64 * 14} {
		r := newRing(t, 1024, RingConfig{MaxBody: 200})
		for range 12 {
			send(t, r, nil)
		}
		r.creditWord.Store(128)
		if n, err := r.Outstanding(); n != 640 || err != nil {
			t.Fatal(n, err)
		}
		if credit == 256 { // once right, then back
			r.creditWord.Store(256)
			_, _ = r.Outstanding()
			credit = 128
		}
		r.creditWord.Store(credit)
		_, err := r.Outstanding()
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("credit %d: %v", credit, err)
		}
		r.creditWord.Store(384)
		for range 2 {
			if _, again := r.Outstanding(); again != err {
				t.Error(again)
			}
		}
		// What is known to be free may still be used, then it ends.
		for err = nil; err == nil; r.Commit() {
			_, err = r.Reserve(0)
		}
		if !errors.Is(err, ErrProtocol) {
			t.Error(err)
		}
	}
}

// FuzzConsumer reads rings of arbitrary bytes, which change while they are read.
func FuzzConsumer(f *testing.F) {
	r := newRing(f, 1024, RingConfig{MaxBody: 200})
	for i := range 9 {
		rec, err := r.Reserve(i * 11)
		if err != nil {
			f.Fatal(err)
		}
		fill(rec, uint64(i))
		r.Commit()
	}
	r.Publish()
	f.Add(bytes.Clone(r.memory), uint16(0), uint64(0))
	f.Add(bytes.Clone(r.memory), uint16(128), uint64(skip|2<<32))
	f.Fuzz(func(t *testing.T, content []byte, at uint16, w uint64) {
		const guard = 4096
		all := Bytes(make([]uint64, (1024+2*guard)/8))
		fill(all, 1)
		mem := all[guard : guard+1024 : guard+1024]
		clear(mem)
		copy(mem, content)
		region, err := NewRegion(mem)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewConsumer(region, new(atomic.Uint64), RingConfig{MinBody: 3, MaxBody: 200})
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(all)
		for i := 0; i < 1000; i++ {
			rec, err := c.Peek()
			if err != nil {
				if !errors.Is(err, ErrProtocol) || rec != nil {
					t.Fatal(rec, err)
				}
				break
			}
			if rec == nil {
				break
			}
			if len(rec) < 3 || len(rec) > 200 {
				t.Fatalf("a record of %d bytes", len(rec))
			}
			for j := -1; j < 30; j++ {
				_, _ = rec.Load(j), rec.Payload(j)
			}
			if i == 3 {
				binary.NativeEndian.PutUint64(mem[at&1016:], w)
				before = bytes.Clone(all)
			}
			c.Advance()
		}
		if !bytes.Equal(before, all) {
			t.Error("the consumer wrote the ring")
		}
	})
}

// ExampleProducer shows a message with one word and a payload.
func ExampleProducer() {
	mem, _ := NewRegion(make([]byte, 1024)) // of two processes: RegionOf a mapping
	credit := new(atomic.Uint64)
	config := RingConfig{MaxBody: 100}
	p, _ := NewProducer(mem, credit, config)
	c, _ := NewConsumer(mem, credit, config)

	r, _ := p.Reserve(8 + 4)
	r.Store(0, 7)
	copy(r.Payload(1), "weft")
	p.Commit()
	p.Publish()

	got, _ := c.Peek()
	fmt.Printf("tag %d: %s\n", got.Load(0), got.Payload(1))
	c.Advance()
	// Output: tag 7: weft
}

package cli

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/sst"
)

// limits are the parameters that a queue is told against.
func limits(steps, bytes, policy string) []sst.EffectiveParam {
	return []sst.EffectiveParam{{Name: "QueueLimit", Value: steps}, {Name: "QueueLimitBytes", Value: bytes}, {Name: "QueueFullPolicy", Value: policy}}
}

func TestStepsText(t *testing.T) {
	for want, c := range map[string]struct {
		info sst.WriterInfo
		r    *rates
	}{
		"0":                   {sst.WriterInfo{}, nil},
		"7, 0.0/s":            {sst.WriterInfo{NextStep: 7}, &rates{}},
		"7, 2.5/s, 3 dropped": {sst.WriterInfo{NextStep: 7, Dropped: 3}, &rates{Steps: 2.5}},
		"7, 1 dropped; no more come, readers take what is there": {sst.WriterInfo{NextStep: 7, Dropped: 1, Ending: true}, nil},
	} {
		if got := stepsText(sst.Stat{WriterInfo: c.info}, c.r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDataText(t *testing.T) {
	st := sst.Stat{WriterInfo: sst.WriterInfo{Written: 1_234_000}}
	for want, r := range map[string]*rates{
		"1.2 MB written":             nil,
		"1.2 MB written, 0 B/s":      {},
		"1.2 MB written, 500.0 kB/s": {Bytes: 500_000},
	} {
		if got := dataText(st, r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A queue without a limit is told without one, whether the writer says 0 or
// nothing.
func TestQueueText(t *testing.T) {
	info := sst.WriterInfo{Held: 1, Queued: 2000, Bytes: 3000}
	for want, params := range map[string][]sst.EffectiveParam{
		"1 step, 2.0 kB, 3.0 kB of memory here":                             nil,
		"1 step, 2.0 kB (Block), 3.0 kB of memory here":                     limits("0", "0", "Block"),
		"1 of 4 steps, 2.0 kB (Discard), 3.0 kB of memory here":             limits("4", "0", "Discard"),
		"1 step, 2.0 kB of 1GiB (Block), 3.0 kB of memory here":             limits("0", "1GiB", "Block"),
		"1 of 1 steps, 2.0 kB of 1073741824 (Block), 3.0 kB of memory here": limits("1", "1073741824", "Block"),
		"1 of 4 steps, 2.0 kB, 3.0 kB of memory here":                       limits("4", "", ""),
	} {
		if got := queueText(sst.Stat{WriterInfo: info, Params: params}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Readers that were left out of the list are counted all the same.
func TestReadersText(t *testing.T) {
	two := sst.WriterInfo{Readers: make([]sst.AttachedReader, 2)}
	for want, st := range map[string]sst.Stat{
		"none": {}, "2": {WriterInfo: two}, "9": {WriterInfo: two, MoreReaders: 7},
	} {
		if got := readersText(st); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReaderState(t *testing.T) {
	for want, r := range map[string]sst.AttachedReader{
		"":                  {Active: true},
		"opening":           {},
		"observer":          {Active: true, Observer: true},
		"observer, opening": {Observer: true},
	} {
		if got := readerState(r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

func TestReaderTable(t *testing.T) {
	if got := readerTable(sst.Stat{MoreReaders: 3}); got != nil {
		t.Errorf("a table of nobody: %q", got)
	}
	st := sst.Stat{MoreReaders: 1, WriterInfo: sst.WriterInfo{Readers: []sst.AttachedReader{
		{Addr: "10.0.0.1:5", Release: "Weft", Plane: "evpath", Carrier: "tcp", Ranks: 12, Active: true, Sent: 3},
		{Addr: "ä:50", Release: "2.12", Plane: "evpath", Carrier: "tcp", Ranks: 1, Observer: true, Lag: 7, Held: 1, HeldBytes: 999},
	}}}
	want := []string{
		"  ADDRESS     RELEASE  PLANE   CARRIER  RANKS  LAG  HELD  BYTES  SENT  DROPPED",
		"  10.0.0.1:5  Weft     evpath  tcp         12    0     0    0 B     3        0",
		"  ä:50        2.12     evpath  tcp          1    7     1  999 B     0        0  observer, opening",
		"  and 1 more reader",
	}
	if d := cmp.Diff(want, readerTable(st)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Cells of a column begin or end at the same place in every line.
func TestAlignColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		left := rapid.IntRange(0, columns).Draw(t, "left")
		cell := rapid.StringMatching(`[a-zäö☃]{1,8}`)
		rows := make([][]string, rapid.IntRange(1, 5).Draw(t, "rows"))
		for i := range rows {
			rows[i] = rapid.SliceOfN(cell, columns, columns).Draw(t, "cells")
		}
		begins, ends := make([]int, columns), make([]int, columns)
		for i, line := range alignColumns(rows, left) {
			if got := strings.Fields(line); !cmp.Equal(got, rows[i]) {
				t.Fatalf("%q of %q", line, rows[i])
			}
			at := 0
			for c, word := range rows[i] {
				begin := at + utf8.RuneCountInString(line[:strings.Index(line, word)])
				line = line[strings.Index(line, word)+len(word):]
				at = begin + utf8.RuneCountInString(word)
				if i == 0 {
					begins[c], ends[c] = begin, at
				}
				if toLeft := c < left || c == columns-1; toLeft && begin != begins[c] || !toLeft && at != ends[c] {
					t.Fatalf("column %d of row %d is at %d to %d, in the first row at %d to %d", c, i, begin, at, begins[c], ends[c])
				}
			}
		}
	})
}

// However many bytes, the text is short, and right within its last digit.
func TestByteTextIsNear(t *testing.T) {
	scale := map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}
	rapid.Check(t, func(t *rapid.T) {
		n := float64(rapid.Uint64().Draw(t, "n"))
		number, unit, ok := strings.Cut(byteText(n), " ")
		x, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || scale[unit] == 0 || len(number) > len("1000.0") {
			t.Fatalf("%q", byteText(n))
		}
		if off := x*scale[unit] - n; off > 0.051*scale[unit] || -off > 0.051*scale[unit] {
			t.Fatalf("%q is off by %g of %g", byteText(n), off, n)
		}
	})
}

package dp

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/fabric"
)

// twoExtents is a list with a hole, and what it is on the wire.
var (
	twoExtents = []Extent{{8, 16, 0x0102030405060708, 4096}, {32, 1 << 40, 7, 0}}

	twoExtentsWire = []byte{
		8, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0, 16, 0, 0, 0, 0, 0, 0,
		32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	}
)

func TestExtentsWire(t *testing.T) {
	if b := AppendExtents([]byte{9}, twoExtents); !slices.Equal(b, append([]byte{9}, twoExtentsWire...)) {
		t.Errorf("appended % x", b)
	}
	list, err := ParseExtents(twoExtentsWire)
	if err != nil || !slices.Equal(list, twoExtents) {
		t.Errorf("parsed %v, %v", list, err)
	}
	if list, err := ParseExtents(nil); len(list) != 0 || err != nil {
		t.Errorf("nothing is %v, %v", list, err)
	}
}

// TestExtentsTruncated: what is cut between two entries is a shorter list, since the record
// around it says how long it is.
func TestExtentsTruncated(t *testing.T) {
	for n := range twoExtentsWire {
		list, err := ParseExtents(twoExtentsWire[:n])
		switch {
		case n%ExtentSize == 0:
			if err != nil || !slices.Equal(list, twoExtents[:n/ExtentSize]) {
				t.Errorf("%d bytes: %v, %v", n, list, err)
			}
		case !errors.Is(err, ErrExtents) || len(list) != 0:
			t.Errorf("%d bytes: %v, %v", n, list, err)
		}
	}
}

func TestExtentsRefused(t *testing.T) {
	const huge = math.MaxUint64
	for name, c := range map[string]struct {
		list []Extent
		at   string
	}{
		"empty":                    {[]Extent{{0, 8, 1, 0}, {8, 0, 1, 8}}, "byte 32:"},
		"overlap":                  {[]Extent{{0, 8, 1, 0}, {7, 8, 1, 8}}, "byte 32:"},
		"twice":                    {[]Extent{{0, 8, 1, 0}, {0, 8, 1, 0}}, "byte 32:"},
		"falling":                  {[]Extent{{64, 8, 1, 0}, {80, 8, 1, 0}, {0, 8, 1, 8}}, "byte 64:"},
		"beyond the block":         {[]Extent{{huge - 7, 8, 1, 0}}, "byte 0:"},
		"beyond what is an offset": {[]Extent{{1, math.MaxInt64, 1, 0}}, "byte 0:"},
		"beyond the memory":        {[]Extent{{0, 8, 1, 0}, {8, 8, 1, huge - 3}}, "byte 32:"},
		"too long":                 {[]Extent{{0, huge, 1, 0}}, "byte 0:"},
	} {
		list, err := ParseExtents(AppendExtents(nil, c.list))
		if !errors.Is(err, ErrExtents) || !strings.Contains(err.Error(), c.at) || len(list) != 0 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	if _, err := ParseExtents(AppendExtents(nil, []Extent{{0, math.MaxInt64, 1, 0}})); err != nil {
		t.Errorf("the longest: %v", err)
	}
}

// TestExtentsRoundTrip: every list that a writer can have comes back, and each byte is found.
func TestExtentsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawExtents(t)
		got, err := ParseExtents(AppendExtents(nil, list))
		if err != nil || !slices.Equal(got, list) {
			t.Fatalf("%v became %v, %v", list, got, err)
		}
		off := rapid.Uint64Range(0, 200).Draw(t, "off")
		want := slices.IndexFunc(list, func(x Extent) bool { return x.Offset+x.Length > off })
		if want < 0 {
			want = len(list)
		}
		if i := behind(list, off); i != want {
			t.Fatalf("byte %d of %v: %d, want %d", off, list, i, want)
		}
	})
}

// drawExtents returns a list for a block of some 100 bytes, each entry in memory of its own.
func drawExtents(t *rapid.T) []Extent {
	var list []Extent
	end := uint64(0)
	for i := range rapid.IntRange(0, 6).Draw(t, "extents") {
		x := Extent{
			Offset: end + rapid.SampledFrom([]uint64{0, 0, 1, 9}).Draw(t, "hole"),
			Length: rapid.Uint64Range(1, 24).Draw(t, "length"),
			Key:    fabric.Key(i + 1),
			At:     rapid.Uint64Range(0, 64).Draw(t, "at"),
		}
		list, end = append(list, x), x.end()
	}
	return list
}

func FuzzExtents(f *testing.F) {
	f.Add(twoExtentsWire)
	f.Add(AppendExtents(nil, []Extent{{0, 8, 1, 0}, {7, 8, 1, 8}}))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseExtents(b)
		if err != nil {
			if !errors.Is(err, ErrExtents) || len(list) != 0 {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		end := uint64(0)
		for _, x := range list {
			if x.Offset < end || x.Length == 0 || int(x.end()) < int(x.Offset) || int(x.At+x.Length) < int(x.At) {
				t.Fatalf("let through %+v", x)
			}
			end = x.end()
		}
		if diff := cmp.Diff(b, AppendExtents([]byte{}, list)); diff != "" && len(b) > 0 {
			t.Fatal(diff)
		}
	})
}

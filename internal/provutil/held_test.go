package provutil

import (
	"errors"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"pgregory.net/rapid"
)

// Memory is released once, when the last operation that has a piece of it has ended.
func TestHeldModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const memories, size = 4, 64
		var h Held
		var all [memories][]byte
		var users [memories]int // of what is held; -1: open, or released
		var released, closed [memories]bool
		for i := range all {
			all[i], users[i] = make([]byte, size), -1
		}
		type use struct {
			v      Vector
			more   [][]byte
			of     []int
			marked bool
		}
		var live []*use
		piece := func(u *use) []byte {
			i := rapid.IntRange(-1, memories-1).Draw(t, "memory")
			if i < 0 || closed[i] {
				return make([]byte, 3)
			}
			if !slices.Contains(u.of, i) {
				u.of = append(u.of, i)
			}
			off := rapid.IntRange(0, size-1).Draw(t, "offset")
			return all[i][off : off+rapid.IntRange(1, size-off).Draw(t, "bytes")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(*rapid.T) {
				u := new(use)
				u.v.First = piece(u)
				for range rapid.IntRange(0, 2).Draw(t, "segments") {
					u.v.More = append(u.v.More, provider.Segment{Bytes: piece(u)})
				}
				for range rapid.IntRange(0, 2).Draw(t, "others") {
					u.more = append(u.more, piece(u))
				}
				live = append(live, u)
			},
			"close": func(t *rapid.T) {
				i := rapid.IntRange(0, memories-1).Draw(t, "which")
				if closed[i] {
					return
				}
				n := 0
				for _, u := range live {
					if uses := u.v.Uses(all[i], u.more...); uses != slices.Contains(u.of, i) {
						t.Fatalf("an operation on %v uses memory %d: %v", u.of, i, uses)
					} else if uses {
						u.marked = true
						n++
					}
				}
				closed[i], users[i] = true, n
				h.Close(all[i], n, func() { released[i] = true })
			},
			"end": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "operation")
				u := live[i]
				live = slices.Delete(live, i, i+1)
				if u.marked {
					h.Ended(u.v, u.more...)
				}
				for _, m := range u.of {
					if closed[m] {
						users[m]--
					}
				}
			},
			"": func(t *rapid.T) {
				held := 0
				for i := range all {
					if closed[i] && users[i] > 0 {
						held++
					}
					if released[i] != (closed[i] && users[i] == 0) {
						t.Fatalf("memory %d, closed %v, with %d users: released %v", i, closed[i], users[i], released[i])
					}
				}
				if h.Len() != held {
					t.Fatalf("%d are held, not %d", h.Len(), held)
				}
			},
		})
	})
}

type oneOpen struct{ m provider.Memory }

func (o oneOpen) Owns(m provider.Memory) bool { return m == o.m }

// A segment of memory that is not open is refused, wherever it stands; raw bytes are not.
func TestCheckOpen(t *testing.T) {
	type memory struct{ provider.Memory }
	good, bad := &memory{}, &memory{}
	segment := func(m provider.Memory) provider.Segment { return provider.Segment{Bytes: make([]byte, 1), Memory: m} }
	for name, c := range map[string]struct {
		op   provider.Op
		want error
	}{
		"raw":    {provider.Op{Local: segment(nil), Locals: []provider.Segment{segment(nil)}}, nil},
		"open":   {provider.Op{Local: segment(good), Locals: []provider.Segment{segment(good), segment(nil)}}, nil},
		"first":  {provider.Op{Local: segment(bad)}, provider.ErrInvalid},
		"second": {provider.Op{Local: segment(good), Locals: []provider.Segment{segment(nil), segment(bad)}}, provider.ErrInvalid},
	} {
		if err := CheckOpen(oneOpen{good}, &c.op); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

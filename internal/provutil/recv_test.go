package provutil

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"pgregory.net/rapid"
)

// A Multi receive puts its messages one behind the other until less than Least is left, in whatever order they are delivered;
// all have their places in the queue, of which it gives none away; its last completion, and no other, says that it was.
func TestMultiReceive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, least := rapid.IntRange(1, 200).Draw(t, "size"), rapid.Uint64Range(1, 50).Draw(t, "least")
		size = max(size, int(least))
		core := NewCore(&fake{}, CoreConfig{})
		core.Lock()
		defer core.Unlock()
		q, err := NewCQ(core, provider.CQConfig{Size: rapid.IntRange(2, 8).Draw(t, "places")})
		if err != nil {
			t.Fatal(err)
		}
		q.Reserve(1) // the post
		r := &Recv{Buffer: Vector{First: make([]byte, size)}, Flags: provider.Multi, Least: least}
		var parts []Part // on their way
		var used, delivered, pushed uint64
		last, ended := false, false
		for !ended {
			if len(parts) > 0 && (last || rapid.Bool().Draw(t, "deliver")) {
				i := rapid.IntRange(0, len(parts)-1).Draw(t, "which")
				p := parts[i]
				parts = append(parts[:i], parts[i+1:]...)
				delivered += p.Len
				var c provider.Completion
				ended = r.Complete(&c, p.At)
				if want := last && len(parts) == 0; c.Offset != p.At || ended != want || (c.Flags&provider.MultiDone != 0) != want {
					t.Fatalf("%+v, ended %v, want %v", c, ended, want)
				}
				q.Push(&c)
				pushed++
				continue
			}
			n := rapid.Uint64Range(0, 60).Draw(t, "length")
			left := uint64(size) - used
			room := min(n, left)
			final := left-room < least
			full := !final && q.n+q.held == len(q.ring)
			q.stalled = false
			p, ok := r.Take(n, q)
			if ok == full || q.stalled != full {
				t.Fatalf("took: %v, full: %v, stalled: %v", ok, full, q.stalled)
			}
			if ok {
				if want := (Part{At: used, Len: room, Last: final}); p != want {
					t.Fatalf("%+v, want %+v", p, want)
				}
				used, last, parts = used+room, final, append(parts, p)
				continue
			}
			if p != (Part{}) || r.Used != used {
				t.Fatalf("%+v, used %d", p, r.Used)
			}
			var c [8]provider.Completion
			if len(parts) == 0 {
				got := q.take(c[:])
				if got == 0 {
					t.Fatal("no place, and nothing to read")
				}
				pushed -= uint64(got)
			}
		}
		if delivered != used || q.held != 0 || uint64(q.n) != pushed {
			t.Fatalf("delivered %d of %d, %d places held, %d completions of %d", delivered, used, q.held, q.n, pushed)
		}
	})
}

// A receive that is not Multi takes one message, as much of it as has room, and needs no more than its own place.
func TestPlainReceive(t *testing.T) {
	core := NewCore(&fake{}, CoreConfig{})
	core.Lock()
	defer core.Unlock()
	q, err := NewCQ(core, provider.CQConfig{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	q.Reserve(1)
	r := &Recv{Buffer: Vector{First: make([]byte, 3), More: []provider.Segment{{Bytes: make([]byte, 4)}}}, Tagged: true, Least: 64}
	for n, want := range map[uint64]Part{0: {Last: true}, 7: {Len: 7, Last: true}, 8: {Len: 7, Last: true}} {
		var c provider.Completion
		if p, ok := r.Take(n, q); !ok || p != want || !r.Complete(&c, p.At) || c != (provider.Completion{}) || r.Used != 0 || r.Pending != 0 {
			t.Errorf("%d: %+v, %v, %+v, %+v", n, p, ok, c, r)
		}
	}
	if r.Kind() != provider.TRecvDone || (&Recv{}).Kind() != provider.RecvDone {
		t.Error("kinds")
	}
}

// A stalled receive takes nothing, even if there is a place now, until it is fed again.
func TestStalledReceive(t *testing.T) {
	var m Matcher[int]
	for range 3 {
		r := m.NewRecv()
		r.Flags, r.Least, r.Buffer.First = provider.Multi, 1, make([]byte, 10)
		r.Stalled = m.posted[0].n > 0
		m.Add(r)
		if p, ok := r.Take(1, nil); ok == r.Stalled || ok != (p.Len == 1) {
			t.Errorf("%v: %+v, %v", r.Stalled, p, ok)
		}
	}
	n := 0
	m.Unstall(func(r *Recv) {
		if p, ok := r.Take(1, nil); r.Stalled || !ok || p.Len != 1 {
			t.Errorf("%+v, %v", p, ok)
		}
		n++
	})
	if m.Unstall(func(*Recv) { n++ }); n != 2 {
		t.Errorf("%d were stalled", n)
	}
}

package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"pgregory.net/rapid"
)

func TestDeque(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q deque[int]
		var want []int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				v := rapid.IntRange(0, 9).Draw(t, "v")
				q.push(v)
				want = append(want, v)
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				if got := q.pop(); got != want[0] {
					t.Fatalf("%d, want %d", got, want[0])
				}
				want = want[1:]
			},
			"remove": func(t *rapid.T) {
				v := rapid.IntRange(0, 9).Draw(t, "v")
				found := false
				for i := range want {
					if want[i] == v {
						want = append(want[:i:i], want[i+1:]...)
						found = true
						break
					}
				}
				if got := q.remove(func(w int) bool { return w == v }); got != found {
					t.Fatalf("remove %d: %v", v, got)
				}
			},
			"": func(t *rapid.T) {
				if q.len() != len(want) || len(want) > 0 && *q.front() != want[0] {
					t.Fatalf("%d entries, want %v", q.len(), want)
				}
			},
		})
	})
}

// The owner's table and a peer's sight of it.
func TestHome(t *testing.T) {
	h, err := newHome(sys.Features{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	m, err := again(h.file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := newForeignHome(m)
	key := makeKey(7, 99)
	if _, ok := f.find(key); ok {
		t.Error("a key that is not there is found")
	}
	h.publish(key, extent{seg: 3, off: 64, len: 128}, 100, provider.PeerRead)
	if b, ok := f.find(key); !ok || b != (block{3, provider.PeerRead, 64, 100}) {
		t.Errorf("%+v, %v", b, ok)
	}
	for _, k := range []provider.Key{0, makeKey(7, 98), makeKey(8, 99), ^provider.Key(0)} {
		if _, ok := f.find(k); ok {
			t.Errorf("key %#x is found", uint64(k))
		}
	}
	h.retract(key)
	if _, ok := f.find(key); ok {
		t.Error("a key that was taken back is found")
	}
	if f.find(0); f.armed.Load() != 0 {
		t.Error("armed")
	}
}

// No two words of the lanes are at one place.
func TestLaneWords(t *testing.T) {
	list := []int{laneDataCredit, laneControlCredit, laneControlDone, laneWants, laneHazardsInUse, laneLet, laneEnded}
	for step := range laneSteps {
		list = append(list, laneCredit(step+1))
	}
	seen := map[int]bool{}
	for _, off := range list {
		if seen[off/64] || off%64 != 0 || off >= laneHazards {
			t.Errorf("offset %d", off)
		}
		seen[off/64] = true
	}
}

func TestHazards(t *testing.T) {
	l, err := newLanes(sys.Features{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	m, err := again(l.file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := newForeignLanes(m)
	h := hazards{lanes: l}
	for i := range hazardSlots {
		if !h.take(provider.Key(i + 1)) {
			t.Fatalf("only %d slots", i)
		}
	}
	if h.take(hazardSlots + 1) {
		t.Error("more hazards than slots")
	}
	if !h.take(5) || !f.uses(5) || !f.uses(hazardSlots) || f.uses(hazardSlots+1) {
		t.Error("the wrong keys are in use")
	}
	h.drop(5)
	if !f.uses(5) {
		t.Error("a key is forgotten although one still uses it")
	}
	h.drop(5)
	if f.uses(5) || !h.take(hazardSlots+1) || !f.uses(hazardSlots+1) {
		t.Error("a slot does not come back")
	}
}

// Files can be written by their owner alone.
func TestFileIsSealed(t *testing.T) {
	for _, off := range []string{"", "future_write"} {
		features, err := sys.DisableFeatures(off)
		if err != nil {
			t.Fatal(err)
		}
		f, err := newFile("test", pageSize, false, features)
		if err != nil {
			t.Fatal(err)
		}
		f.m.Bytes()[0] = 7
		if m, err := sys.Map(f.fd, 0, pageSize, true); err == nil {
			t.Errorf("without %q a peer maps it writable", off)
			_ = m.Close()
		}
		dup, err := f.fd.Dup()
		if err != nil {
			t.Fatal(err)
		}
		m, err := mapForeign(dup, pageSize, false)
		if err != nil {
			t.Fatal(err)
		}
		if m.Bytes()[0] != 7 {
			t.Error("a peer reads something else")
		}
		_ = m.Close()
		for _, n := range []uint64{0, 1, 2 * pageSize, 1 << 50} {
			dup, err := f.fd.Dup()
			if err != nil {
				t.Fatal(err)
			}
			if m, err := mapForeign(dup, n, false); err == nil {
				t.Errorf("%d bytes are mapped", n)
				_ = m.Close()
			}
		}
		f.close()
	}
}

package provutil

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
	"pgregory.net/rapid"
)

// Who was told the ids of one pool knows nothing of those of another that is veiled.
func TestPoolVeiled(t *testing.T) {
	seen := map[uint64]bool{}
	for range 4 {
		var p Pool[int]
		p.Veil()
		for range poolChunk {
			id, _ := p.New()
			seen[id] = true
		}
	}
	if len(seen) < 4*poolChunk-1 { // of 2^32
		t.Errorf("%d of %d ids come again", 4*poolChunk-len(seen), 4*poolChunk)
	}
}

func TestPoolModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool[int]
		if rapid.Bool().Draw(t, "veiled") {
			p.Veil()
		}
		live, dead := map[uint64]int{}, map[uint64]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				id, v := p.New()
				if _, used := live[id]; used || dead[id] || id == 0 || *v != 0 {
					t.Fatalf("id %#x, %d", id, *v)
				}
				*v = len(dead)*1000 + len(live) + 1
				live[id] = *v
			},
			"put": func(t *rapid.T) {
				for id := range live {
					p.Put(id)
					p.Put(id)
					delete(live, id)
					dead[id] = true
					return
				}
			},
			"any id": func(t *rapid.T) {
				if id := rapid.Uint64().Draw(t, "id"); live[id] == 0 && p.Get(id) != nil {
					t.Fatal(id)
				}
			},
			"": func(t *rapid.T) {
				n := 0
				p.Each(func(id uint64, v *int) {
					n++
					if live[id] != *v {
						t.Fatalf("%#x: %d, want %d", id, *v, live[id])
					}
				})
				for id := range dead {
					if p.Get(id) != nil {
						t.Fatalf("%#x is back", id)
					}
				}
				if n != len(live) || p.Len() != n {
					t.Fatal(n, p.Len(), len(live))
				}
			},
		})
	})
}

func TestAV(t *testing.T) {
	a := AV[string]{Max: 3}
	p, v, fresh, err := a.Insert("x://1")
	if err != nil || !fresh || p == 0 {
		t.Fatal(p, fresh, err)
	}
	*v = "one"
	if again, v, fresh, err := a.Insert("x://1"); again != p || fresh || err != nil || *v != "one" {
		t.Error(again, fresh, err)
	}
	if addr, err := a.Address(p); addr != "x://1" || err != nil {
		t.Error(addr, err)
	}
	a.Bury(p)
	a.Bury(p)
	if q, _ := a.Find("x://1"); q != 0 || !a.entry(p).dead || *a.Lookup(p) != "one" {
		t.Error("buried", q)
	}
	q, _, fresh, err := a.Insert("x://1")
	if q == p || !fresh || err != nil {
		t.Error(q, p, fresh, err)
	}
	if found, _ := a.Find("x://1"); found != q {
		t.Error(found)
	}
	if !a.Remove(p) || a.Remove(p) || a.Lookup(p) != nil {
		t.Error("remove")
	}
	if found, _ := a.Find("x://1"); found != q {
		t.Error("the dead one took the address along")
	}
	if _, err := a.Address(p); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
	for i := range 2 {
		if _, _, _, err := a.Insert(provider.Address(fmt.Sprint("y", i))); err != nil {
			t.Error(err)
		}
	}
	if _, _, _, err := a.Insert("z"); !errors.Is(err, provider.ErrNoMemory) {
		t.Error(err)
	}
	if text := fmt.Sprint(p, q); text != "1 2" {
		t.Errorf("the first peers are %s", text)
	}
	if p, _ := a.Find("y0"); p.String() != "1.1" {
		t.Errorf("the second at the first place is %v", p)
	}
	n := 0
	a.Each(func(p provider.Peer, _ provider.Address, _ *string) { n++; a.Remove(p) })
	if n != 3 || a.Len() != 0 || a.Lookup(0) != nil {
		t.Error(n, a.Len())
	}
}

type owner struct{ gen uint64 }

func (o *owner) Generation() uint64 { return o.gen }

func TestKeys(t *testing.T) {
	var k Keys
	var o owner
	mem := []byte("0123456789")
	r, err := k.Add(memmon.Mapped(mem, &o), provider.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	both, err := k.Add(memmon.HeapBytes(mem), provider.PeerRead|provider.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Add(nil, 0); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
	for _, x := range []struct {
		key       provider.Key
		offset, n uint64
		need      provider.Access
		ok        bool
	}{
		{r.Key(), 0, 10, provider.PeerRead, true},
		{r.Key(), 10, 0, provider.PeerRead, true},
		{r.Key(), 3, 7, provider.PeerRead, true},
		{r.Key(), 3, 8, provider.PeerRead, false},
		{r.Key(), 11, 0, provider.PeerRead, false},
		{r.Key(), ^uint64(0), 2, provider.PeerRead, false},
		{r.Key(), 2, ^uint64(0), provider.PeerRead, false},
		{r.Key(), 0, 1, provider.PeerWrite, false},
		{r.Key(), 0, 1, provider.PeerRead | provider.PeerWrite, false},
		{both.Key(), 0, 1, provider.PeerRead | provider.PeerWrite, true},
		{r.Key() + 1<<32, 0, 1, provider.PeerRead, false},
		{r.Key() + 2, 0, 1, provider.PeerRead, false},
		{0, 0, 1, provider.PeerRead, false},
		{^provider.Key(0), 0, 1, provider.PeerRead, false},
	} {
		err := k.Check(x.key, x.offset, x.n, x.need)
		if (err == nil) != x.ok || err != nil && !errors.Is(err, provider.ErrKey) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	b, use, err := k.Use(r.Key(), 3, 4, provider.PeerRead)
	if err != nil || string(b) != "3456" || cap(b) != 4 {
		t.Errorf("%q, %v", b, err)
	}
	closed := make(chan bool)
	go func() { closed <- r.Close() }()
	select {
	case <-closed:
		t.Error("closed in use")
	default:
	}
	use.Done()
	if !<-closed || r.Close() {
		t.Error("not the first close")
	}
	if err := k.Check(r.Key(), 0, 1, provider.PeerRead); !errors.Is(err, provider.ErrKey) {
		t.Error(err)
	}
	next, err := k.Add(memmon.Mapped(mem, &o), provider.PeerRead)
	if err != nil || next.Key() == r.Key() || uint32(next.Key()) != uint32(r.Key()) {
		t.Errorf("%v, %#x after %#x", err, next.Key(), r.Key())
	}
	o.gen++
	if err := k.Check(next.Key(), 0, 1, provider.PeerRead); !errors.Is(err, provider.ErrKey) {
		t.Errorf("memory that is another one now: %v", err)
	}
	if next.Close(); used(&k) != 1 || string(both.Bytes()) != string(mem) || !both.Access().Has(provider.PeerWrite) {
		t.Error(used(&k))
	}
}

// Memory that closes is not used at return.
func TestKeysRace(t *testing.T) {
	var k Keys
	var wg sync.WaitGroup
	for range 200 {
		mem := make([]byte, 64)
		r, err := k.Add(memmon.HeapBytes(mem), provider.PeerWrite)
		if err != nil {
			t.Fatal(err)
		}
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			for {
				b, use, err := k.Use(r.Key(), 0, 64, provider.PeerWrite)
				if err != nil {
					return
				}
				b[0]++
				use.Done()
			}
		})
		close(start)
		r.Close()
		mem[0] = 1 // the race detector looks
	}
	wg.Wait()
}

func TestBuffers(t *testing.T) {
	var p Buffers
	for _, n := range []int{0, 1, 64, 65, 4096, 65536, 65537} {
		b := p.Get(n)
		if len(b) != n {
			t.Errorf("%d: %d", n, len(b))
		}
		p.Put(b)
	}
	p.Put(make([]byte, 100)) // not ours
	if n := testing.AllocsPerRun(100, func() { p.Put(p.Get(4000)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for range 100 {
		p.Put(make([]byte, 65536))
	}
	if n := len(p.free[16]); n != 16 {
		t.Errorf("%d buffers of 64 KiB are kept", n)
	}
}

func TestVectorModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Vector, []byte) {
			parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 6), 1, 5).Draw(t, name)
			v := Vector{First: bytes.Clone(parts[0])}
			for _, p := range parts[1:] {
				v.More = append(v.More, provider.Segment{Bytes: bytes.Clone(p)})
			}
			return v, bytes.Join(parts, nil)
		}
		flat := func(v Vector) []byte {
			b := make([]byte, v.Len())
			if n := v.Gather(0, b); n != len(b) {
				t.Fatal(n)
			}
			return b
		}
		dst, dstFlat := draw("dst")
		src, srcFlat := draw("src")
		i := rapid.IntRange(0, len(dstFlat)+1).Draw(t, "dst offset")
		j := rapid.IntRange(0, len(srcFlat)+1).Draw(t, "src offset")
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		var n int
		if i <= len(dstFlat) && j <= len(srcFlat) {
			n = copy(dstFlat[i:], srcFlat[j:min(j+limit, len(srcFlat))])
		}
		if got := CopyVector(dst, uint64(i), src, uint64(j), uint64(limit)); got != uint64(n) {
			t.Fatalf("%d, want %d", got, n)
		}
		if !bytes.Equal(flat(dst), dstFlat) || !bytes.Equal(flat(src), srcFlat) {
			t.Fatal("other bytes")
		}
		part := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "part")
		n = 0
		if i <= len(dstFlat) {
			n = copy(dstFlat[i:], part)
		}
		if got := dst.Scatter(uint64(i), part); got != n || !bytes.Equal(flat(dst), dstFlat) {
			t.Fatalf("%d, want %d", got, n)
		}
	})
}

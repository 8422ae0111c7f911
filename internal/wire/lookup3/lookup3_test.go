package lookup3

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The check values of docs/wire/bp5.md §1.2 and of the hash's own self test.
func TestHash2(t *testing.T) {
	tests := []struct {
		in   string
		c, b uint32
	}{
		{"", 0xdeadbeef, 0xdeadbeef},
		{"Four score and seven years ago", 0x17770551, 0xce7226e6},
	}
	for _, tt := range tests {
		c, b := Hash2([]byte(tt.in))
		if c != tt.c || b != tt.b {
			t.Errorf("Hash2(%q) = %08x %08x, want %08x %08x", tt.in, c, b, tt.c, tt.b)
		}
	}
}

func TestHashSeed(t *testing.T) {
	p := []byte("Four score and seven years ago")
	for _, tt := range []struct{ init, want uint32 }{{0, 0x17770551}, {1, 0xcd628161}} {
		if got := Hash(p, tt.init); got != tt.want {
			t.Errorf("Hash(seed %d) = %08x, want %08x", tt.init, got, tt.want)
		}
	}
	if got := Hash(nil, 0); got != 0xdeadbeef {
		t.Errorf("Hash(nil) = %08x, want deadbeef", got)
	}
}

// Atoms that real peers publish (docs/wire/cm.md §2.2): lengths 3 to 14, so
// both a tail of every kind and a full round are covered.
func TestAtoms(t *testing.T) {
	for name, want := range map[string]uint32{
		"IP_PORT":              0x8df2c994,
		"IP_ADDR":              0x98023901,
		"IP_HOST":              0x67fb5ba4,
		"CM_CMANAGER_ID":       0xc490e7de,
		"IP_INTERFACE":         0x774b3849,
		"CM_TRANSPORT":         0x8edf88d5,
		"SST_GROUP_ID":         0x59f8f653,
		"CM_ENET_CONN_TIMEOUT": 0x18ff5e08,
		"vni":                  0x1cf9baeb,
		"RDMA_DRC_CRED":        0xfec711ff,
		"RDMA_DRC_KEY":         0xd7577bca,
		"WEFT":                 0x39043226,
	} {
		if got := Hash([]byte(name), 0); got != want {
			t.Errorf("Hash(%q) = %08x, want %08x", name, got, want)
		}
	}
}

// Every length around the 12-byte round gives its own value, and the primary
// value does not depend on which of the two functions is asked.
func TestLengths(t *testing.T) {
	seen := map[uint32]int{}
	p := bytes.Repeat([]byte{0}, 40)
	for n := range p {
		c, _ := Hash2(p[:n])
		if h := Hash(p[:n], 0); h != c {
			t.Errorf("length %d: Hash %08x, Hash2 %08x", n, h, c)
		}
		if m, ok := seen[c]; ok {
			t.Errorf("lengths %d and %d of zeros have the same hash", m, n)
		}
		seen[c] = n
	}
}

// The hash must not look past the end of its input.
func TestIgnoresCapacity(t *testing.T) {
	p := []byte("abcdefghijklmnopqrstuvwxyz")
	for n := range p {
		want, _ := Hash2(bytes.Clone(p[:n]))
		if got, _ := Hash2(p[:n]); got != want {
			t.Errorf("length %d: hash depends on the bytes behind the slice", n)
		}
	}
}

func BenchmarkHash2(b *testing.B) {
	p := bytes.Repeat([]byte("weft"), 1024)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		Hash2(p)
	}
}

// byHand is the hash as docs/wire/bp5.md §1.2 describes it in words, one step
// after the other, without the functions of this package.
func byHand(p []byte, init uint32) (c, b uint32) {
	rot := func(x uint32, k int) uint32 { return x<<k | x>>(32-k) }
	word := func(p []byte) (w uint32) {
		for i := range 4 {
			if i < len(p) {
				w |= uint32(p[i]) << (8 * i)
			}
		}
		return w
	}
	rest := func(i int) []byte { return p[min(i, len(p)):] }
	var v [3]uint32 // a, b, c
	for i := range v {
		v[i] = 0xdeadbeef + uint32(len(p)) + init
	}
	add := func() {
		for i := range v {
			v[i] += word(rest(4 * i))
		}
	}
	for len(p) > 12 {
		add()
		// Each step takes one word off another, stirs, and adds the third.
		for i, k := range []int{4, 6, 8, 16, 19, 4} {
			x, y, z := i%3, (i+2)%3, (i+1)%3
			v[x] -= v[y]
			v[x] ^= rot(v[y], k)
			v[y] += v[z]
		}
		p = p[12:]
	}
	if len(p) == 0 {
		return v[2], v[1]
	}
	add()
	for i, k := range []int{14, 11, 25, 16, 4, 14, 24} {
		x, y := (i+2)%3, (i+1)%3
		v[x] ^= v[y]
		v[x] -= rot(v[y], k)
	}
	return v[2], v[1]
}

func TestAgainstDescription(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 200 {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		init := r.Uint32()
		wantC, wantB := byHand(p, 0)
		if c, b := Hash2(p); c != wantC || b != wantB {
			t.Fatalf("Hash2(% x) = %08x %08x, want %08x %08x", p, c, b, wantC, wantB)
		}
		want, _ := byHand(p, init)
		if got := Hash(p, init); got != want {
			t.Fatalf("Hash(% x, %08x) = %08x, want %08x", p, init, got, want)
		}
	}
}

func FuzzHash(f *testing.F) {
	f.Add([]byte("Four score and seven years ago"), uint32(1))
	f.Fuzz(func(t *testing.T, p []byte, init uint32) {
		if want, _ := byHand(p, init); Hash(p, init) != want {
			t.Fatalf("Hash(% x, %08x) = %08x, want %08x", p, init, Hash(p, init), want)
		}
	})
}

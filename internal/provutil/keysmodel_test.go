package provutil

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
	"pgregory.net/rapid"
)

// used is the number of registrations.
func used(k *Keys) int { return len(k.table) - len(k.free) }

// Keys against a map: whatever was registered, closed and replaced, a key that is not of now gives nothing, and one that
// is gives its own memory, within its bounds and rights.
func TestKeysModel(t *testing.T) {
	type registered struct {
		region *Region
		mem    []byte
		access provider.Access
		owner  *owner
		gone   bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var k Keys
		live := map[provider.Key]*registered{}
		var all []provider.Key // of ever
		pick := func(t *rapid.T) provider.Key {
			if len(all) == 0 || rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				return provider.Key(rapid.Uint64().Draw(t, "any key"))
			}
			key := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			if rapid.IntRange(0, 9).Draw(t, "near") == 0 {
				key ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
			}
			return key
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := &registered{mem: make([]byte, rapid.IntRange(0, 20).Draw(t, "n")), access: provider.Access(rapid.IntRange(0, 3).Draw(t, "access")), owner: &owner{}}
				kind := memmon.HeapBytes(r.mem)
				if rapid.Bool().Draw(t, "mapped") {
					kind = memmon.Mapped(r.mem, r.owner)
				} else {
					r.owner = nil
				}
				region, err := k.Add(kind, r.access)
				if err != nil {
					t.Fatal(err)
				}
				if live[region.Key()] != nil || region.Key() == 0 {
					t.Fatalf("key %#x is in use", region.Key())
				}
				r.region = region
				live[region.Key()] = r
				all = append(all, region.Key())
			},
			"close": func(t *rapid.T) {
				key := pick(t)
				r := live[key]
				if r == nil {
					t.Skip()
				}
				if !r.region.Close() || r.region.Close() {
					t.Fatal("closed not once")
				}
				delete(live, key)
			},
			"unmap": func(t *rapid.T) {
				if r := live[pick(t)]; r != nil && r.owner != nil {
					r.owner.gen++
					r.gone = true
				}
			},
			"use": func(t *rapid.T) {
				key := pick(t)
				offset := rapid.OneOf(rapid.Uint64Range(0, 21), rapid.Uint64()).Draw(t, "offset")
				n := rapid.OneOf(rapid.Uint64Range(0, 21), rapid.Uint64()).Draw(t, "length")
				need := provider.Access(rapid.IntRange(0, 3).Draw(t, "need"))
				r := live[key]
				ok := r != nil && !r.gone && r.access.Has(need) && offset <= uint64(len(r.mem)) && n <= uint64(len(r.mem))-offset
				b, region, err := k.Use(key, offset, n, need)
				if (err == nil) != ok || err != nil && !errors.Is(err, provider.ErrKey) {
					t.Fatalf("key %#x, %d bytes from %d, need %v of %+v: %v", key, n, offset, need, r, err)
				}
				if err != nil {
					return
				}
				defer region.Done()
				if uint64(len(b)) != n || uint64(cap(b)) != n || region != r.region || n > 0 && &b[0] != &r.mem[offset] {
					t.Fatalf("key %#x gives other memory", key)
				}
			},
			"": func(t *rapid.T) {
				if used(&k) != len(live) {
					t.Fatalf("%d registrations, want %d", used(&k), len(live))
				}
			},
		})
	})
}

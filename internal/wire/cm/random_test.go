package cm

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newRand returns a source of random numbers whose seed is in the test's log.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// randomBytes returns up to limit random bytes.
func randomBytes(rnd *rand.Rand, limit int) []byte {
	b := make([]byte, rnd.IntN(limit+1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// randomAttr returns an attribute that can be written.
func randomAttr(rnd *rand.Rand) Attr {
	a := Attr{Atom: rnd.Uint32()}
	switch rnd.IntN(6) {
	case 0:
		a.Kind, a.Int = KindInt32, int64(int32(rnd.Uint32()))
	case 1:
		a.Kind, a.Int = KindInt64, int64(rnd.Uint64())
	case 2:
		a.Kind, a.Text = KindString, strings.ReplaceAll(string(randomBytes(rnd, 40)), "\x00", "-")
	case 3:
		a.Kind, a.Bytes = KindOpaque, randomBytes(rnd, 40)
	case 4:
		a.Kind, a.Int = KindAtom, int64(rnd.Uint32())
	default:
		a.Kind, a.Float = KindFloat, rnd.NormFloat64()
	}
	return a
}

func TestRandomContacts(t *testing.T) {
	rnd := newRand(t)
	order := cmpopts.SortSlices(func(a, b Attr) bool { return a.Atom < b.Atom })
	for range 60 {
		var c Contact
		for range rnd.IntN(30) {
			c = append(c, randomAttr(rnd))
		}
		got := mustParse(t, c.String())
		if diff := cmp.Diff(c, got, order, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		for _, a := range c {
			if found, ok := got.Lookup(a.Atom); !ok || found.Kind != a.Kind {
				t.Fatalf("%+v became %+v", a, found)
			}
		}
	}
}

// TestContactDamagedAnywhere changes single bytes: never a panic, and what still
// parses can be written again.
func TestContactDamagedAnywhere(t *testing.T) {
	raw, err := every().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, x := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := bytes.Clone(raw)
			b[i] = x
			c, err := ParseAttrs(b)
			if err != nil {
				if !errors.Is(err, ErrContact) {
					t.Fatalf("byte %d = %#x: %v", i, x, err)
				}
				continue
			}
			if c.String() == "" {
				t.Fatalf("byte %d = %#x: parsed to what cannot be written: %+v", i, x, c)
			}
		}
	}
}

// randomUnit returns a unit of any kind, in the form that parsing gives.
func randomUnit(rnd *rand.Rand) Unit {
	switch rnd.IntN(6) {
	case 0:
		return Handshake{Version: uint8(rnd.Uint32()), FormatServer: rnd.Uint32(), ID: rnd.Uint32() >> 1, Answer: rnd.IntN(2) == 0}
	case 1:
		return Push(randomBytes(rnd, 20), randomBytes(rnd, 3000))
	case 2:
		return FormatMessage{Type: FormatType(rnd.IntN(2)), Condition: rnd.Uint32(), First: randomBytes(rnd, 20), Second: []byte{}}
	case 3:
		return LongData{Record: randomBytes(rnd, 5000)}
	case 4:
		return AttrData{Attrs: make([]byte, 8*rnd.IntN(10)), Record: randomBytes(rnd, 5000)}
	default:
		return Data{Record: randomBytes(rnd, 15_000)}
	}
}

// chunks is a stream that comes in random pieces.
type chunks struct {
	rnd *rand.Rand
	b   []byte
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:min(len(c.b), 1+c.rnd.IntN(2000))])
	c.b = c.b[n:]
	return n, nil
}

func TestRandomStreams(t *testing.T) {
	rnd := newRand(t)
	for range 20 {
		var want []Unit
		var stream []byte
		for range rnd.IntN(20) {
			u := randomUnit(rnd)
			want = append(want, u)
			stream = u.Append(stream)
		}
		r := NewReader(&chunks{rnd, stream}, ReaderConfig{Buffer: 16 + rnd.IntN(5000)})
		for i, w := range want {
			u, err := r.Next()
			if err != nil || !reflect.DeepEqual(w, u) {
				t.Fatalf("unit %d: %v %s", i, err, cmp.Diff(w, u))
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
	}
}

// TestSmallRecordsAreGuarded: of a record below the limit of cm.md §5.1 no single
// byte can change unnoticed, neither in its length nor in itself.
func TestSmallRecordsAreGuarded(t *testing.T) {
	good := Data{Record: []byte("a record that has a checksum")}.Append(nil)
	if good[0] == 0 {
		t.Fatal("this record's checksum happens to be 0")
	}
	for i := 4; i < len(good); i++ {
		for x := 1; x < 256; x++ {
			b := bytes.Clone(good)
			b[i] ^= byte(x)
			if _, _, err := ParseData(b); err == nil {
				t.Fatalf("byte %d changed by %#x was not noticed", i, x)
			}
		}
	}
}

// TestCaptureDamagedAnywhere changes single bytes of a real session: a unit, an
// error, never a panic, never more memory than the stream is worth.
func TestCaptureDamagedAnywhere(t *testing.T) {
	rnd := newRand(t)
	whole := captures(t)[0].bytes[PreambleSize:]
	for range 300 {
		b := bytes.Clone(whole)
		b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
		var c counter
		config := c.config(math.MaxInt)
		config.MaxFormat = math.MaxInt32
		r := NewReader(bytes.NewReader(b), config)
		for {
			u, err := r.Next()
			if err != nil && !errors.Is(err, ErrChecksum) {
				break
			}
			if rec, ok := Record(u); ok {
				c.free(rec)
			}
		}
		if c.live != 0 || c.biggest > firstChunk {
			t.Fatalf("%d bytes not given back, %d at once", c.live, c.biggest)
		}
	}
}

// FuzzReaderMemory: whatever comes, memory follows what has arrived.
func FuzzReaderMemory(f *testing.F) {
	f.Add(claim(MaxData))
	f.Add(append(claim(3<<20), make([]byte, 2<<20)...))
	f.Add(captures(f)[0].bytes[PreambleSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c counter
		r := NewReader(bytes.NewReader(b), c.config(math.MaxInt))
		for {
			u, err := r.Next()
			if err != nil && !errors.Is(err, ErrChecksum) {
				break
			}
			if rec, ok := Record(u); ok {
				c.free(rec)
			}
		}
		if c.live != 0 {
			t.Fatalf("%d bytes not given back", c.live)
		}
		if c.biggest > max(firstChunk, 2*len(b)) {
			t.Fatalf("%d bytes at once for a stream of %d", c.biggest, len(b))
		}
	})
}

// TestContactIsSafeToShare runs every method of one contact from many goroutines;
// the race detector is the judge.
func TestContactIsSafeToShare(t *testing.T) {
	c := every()
	want := c.String()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if c.String() != want || c.Describe() == "" {
					t.Error("changed")
				}
				_, _ = c.Addr()
				_, _ = c.CMID()
				_, _ = c.Mark()
				_ = c.WithMark()
			}
		})
	}
	wg.Wait()
}

package carrier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// blobAt is where the blob of a record of testFormat begins.
const blobAt = variantHeader + 24

// filled is a record whose blob can be told apart from zeros.
func filled(f *ffs.Format, n, size int) Record {
	r := record(f, n, size)
	for i := range r.Parts[1] {
		r.Parts[1][i] = byte(i*11 + i/253 + n)
	}
	return r
}

// places is a Handler with a Place that takes every blob.
type places struct {
	recorder
	made chan *Placement
	dst  []byte // the next placement's, or nil for new memory
	in   chan Inbound
}

func newPlaces() *places {
	return &places{recorder: *newRecorder(), made: make(chan *Placement, 100), in: make(chan Inbound, 100)}
}

func (p *places) place(_ Link, f *ffs.Format, head []byte, total int) *Placement {
	if _, ok := f.Tail(head, total); !ok {
		return nil
	}
	dst := p.dst
	if dst == nil {
		dst = make([]byte, total-blobAt)
	}
	pl := Place(dst, blobAt)
	p.made <- pl
	return pl
}

func (p *places) Message(l Link, in Inbound) { p.in <- in }

func TestPlaceBlob(t *testing.T) {
	f := testFormat(t, "F")
	p := newPlaces()
	to, _ := open(t, Config{Handler: p, Place: p.place})
	from, _ := open(t, Config{})
	l := dial(t, from, to.Contact())
	for _, size := range []int{0, 8, cm.PlaceMin - blobAt - 1, cm.PlaceMin - blobAt, 1 << 20, 9<<20 + 5} {
		out := filled(f, 3, size)
		if err := l.Send(out); err != nil {
			t.Fatal(err)
		}
		in := next(t, "record", p.in)
		got := in.Data
		if placed := size >= cm.PlaceMin-blobAt; placed != (in.Placed != nil) {
			t.Fatalf("%d bytes: placed %v", size, in.Placed != nil)
		} else if placed {
			b, ok := in.Placed.Bytes()
			if !ok || len(in.Data) != blobAt {
				t.Fatalf("%d bytes before the placement, %v", len(in.Data), ok)
			}
			got = append(bytes.Clone(in.Data), b...)
		}
		if !bytes.Equal(got, bytesOf(out)) {
			t.Errorf("%d bytes came out wrong", size)
		}
		in.Free()
	}
}

// TestPlaceCounts: placed bytes are counted as any others.
func TestPlaceCounts(t *testing.T) {
	f := testFormat(t, "F")
	p := newPlaces()
	links := make(chan Link, 100)
	to, _ := open(t, Config{Handler: p, Place: func(l Link, f *ffs.Format, head []byte, total int) *Placement {
		links <- l
		return p.place(l, f, head, total)
	}})
	from, _ := open(t, Config{})
	l := dial(t, from, to.Contact())
	id := f.ID()
	want := uint64(cm.PreambleSize + cm.HandshakeSize + len(cm.Push(id[:], f.Body()).Append(nil)))
	for _, out := range []Record{filled(f, 1, 1<<20), filled(f, 2, 1)} {
		want += uint64(len(cm.Data{Record: bytesOf(out)}.Append(nil)))
		if err := l.Send(out); err != nil {
			t.Fatal(err)
		}
		next(t, "record", p.in)
	}
	if in := next(t, "link", links).Info(); in.BytesIn != want || in.MessagesIn != 2 {
		t.Errorf("%d bytes in, want %d: %+v", in.BytesIn, want, in)
	}
}

// stalled has a peer send a record up to somewhere inside its blob.
func stalled(t *testing.T, c *CM, size, sent int) (p *raw, rest []byte) {
	t.Helper()
	f := testFormat(t, "F")
	p = join(t, c, 77, 0)
	p.push(f)
	unit := cm.Data{Record: bytesOf(filled(f, 1, size))}.Append(nil)
	p.send(unit[:8+blobAt+sent])
	return p, unit[8+blobAt+sent:]
}

// TestPlaceRevoked: the memory is free at once, whatever the peer does, and the
// link goes on when the peer does.
func TestPlaceRevoked(t *testing.T) {
	const size = 3 << 20
	p := newPlaces()
	c, _ := open(t, Config{Handler: p, Place: p.place})
	peer, rest := stalled(t, c, size, 1<<20)
	pl := next(t, "placement", p.made)
	pl.Revoke() // returns although the peer is silent
	pl.Revoke()
	b, ok := pl.Bytes()
	if ok {
		t.Error("not revoked")
	}
	before := bytes.Clone(b)
	peer.send(rest)
	in := next(t, "record", p.in)
	if in.Placed != pl {
		t.Errorf("%+v", in)
	}
	if !bytes.Equal(b, before) {
		t.Error("written to after Revoke")
	}
	f := testFormat(t, "F")
	small := bytesOf(filled(f, 2, 10))
	peer.send(cm.Data{Record: small}.Append(nil))
	if in := next(t, "next record", p.in); !bytes.Equal(in.Data, small) || in.Placed != nil {
		t.Error("the stream is out of step")
	}
	_ = peer.conn.Close()
	next(t, "end", p.lost)
}

// TestPlaceLost: a peer that dies inside the blob.
func TestPlaceLost(t *testing.T) {
	for name, end := range map[string]func(*raw){
		"closes": func(p *raw) { _ = p.conn.Close() },
		"resets": func(p *raw) { _ = p.conn.SetLinger(0); _ = p.conn.Close() },
	} {
		p := newPlaces()
		c, _ := open(t, Config{Handler: p, Place: p.place})
		peer, _ := stalled(t, c, 3<<20, 1<<20)
		pl := next(t, "placement", p.made)
		end(peer)
		e := next(t, "end", p.lost)
		if e.err == nil || name == "closes" && !errors.Is(e.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, e.err)
		}
		pl.Revoke()
		nothingIn(t, "record", p.in)
	}
}

// TestPlaceClose: closing does not wait for the rest of a record.
func TestPlaceClose(t *testing.T) {
	p := newPlaces()
	c, _ := open(t, Config{Handler: p, Place: p.place, CloseTimeout: 1})
	stalled(t, c, 3<<20, 1<<20)
	next(t, "placement", p.made)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if len(p.lost) != 1 {
		t.Error("not lost")
	}
}

// TestPlaceWrong: a placement that does not fit takes the link down.
func TestPlaceWrong(t *testing.T) {
	for name, pl := range map[string]*Placement{
		"too long":  Place(make([]byte, 1<<20+1), blobAt),
		"too short": Place(make([]byte, 1<<20-1), blobAt),
		"at 0":      Place(make([]byte, 1<<20+blobAt), 0),
		"negative":  Place(make([]byte, 1<<20+blobAt+1), -1),
		"behind":    Place(nil, 1<<20+blobAt),
	} {
		r := newRecorder()
		c, _ := open(t, Config{Handler: r, Place: func(Link, *ffs.Format, []byte, int) *Placement { return pl }})
		from, _ := open(t, Config{})
		_ = dial(t, from, c.Contact()).Send(filled(testFormat(t, "F"), 1, 1<<20))
		if e := next(t, "end", r.lost); e.err == nil {
			t.Errorf("%s: accepted", name)
		}
		nothingIn(t, name, r.got)
	}
}

// TestPlaceUnknownFormat: the hook is not asked, and the link ends as ever.
func TestPlaceUnknownFormat(t *testing.T) {
	p := newPlaces()
	c, _ := open(t, Config{Handler: p, Place: p.place})
	peer := join(t, c, 77, 0)
	peer.send(cm.Data{Record: bytesOf(filled(testFormat(t, "F"), 1, 1<<20))}.Append(nil))
	if e := next(t, "end", p.lost); !errors.Is(e.err, ErrUnknownFormat) {
		t.Error(e.err)
	}
	nothingIn(t, "placement", p.made)
}

// TestPlaceHostile: lengths that lie are the business of the hook, which sees
// them; what it declines is bounded as ever.
func TestPlaceHostile(t *testing.T) {
	p := newPlaces()
	c, _ := open(t, Config{Handler: p, Place: p.place})
	peer := join(t, c, 77, 0)
	f := testFormat(t, "F")
	peer.push(f)
	rec := bytesOf(filled(f, 1, 1<<20))
	binary.LittleEndian.PutUint64(rec[variantHeader+8:], 1<<62) // the count
	peer.send(cm.Data{Record: rec}.Append(nil))
	if in := next(t, "record", p.in); in.Placed != nil || len(in.Data) != len(rec) {
		t.Errorf("%d bytes", len(in.Data))
	}
	nothingIn(t, "placement", p.made)
	_ = peer.conn.Close()
	next(t, "end", p.lost)
}

// TestPlaceRevokeRace revokes at random moments of a stream of records; the
// memory must be ours at once, which the race detector watches.
func TestPlaceRevokeRace(t *testing.T) {
	f := testFormat(t, "F")
	p := newPlaces()
	to, _ := open(t, Config{Handler: p, Place: p.place})
	from, _ := open(t, Config{})
	l := dial(t, from, to.Contact())
	out := filled(f, 1, 1<<20)
	var whole, cut atomic.Int32
	var all sync.WaitGroup
	for range 60 {
		if err := l.Send(out); err != nil {
			t.Fatal(err)
		}
		pl := next(t, "placement", p.made)
		all.Go(func() {
			for range rand.IntN(200) {
				_, _ = pl.Bytes()
			}
			pl.Revoke()
			b, _ := pl.Bytes()
			clear(b)
		})
		next(t, "record", p.in)
		if _, ok := pl.Bytes(); ok {
			whole.Add(1)
		} else {
			cut.Add(1)
		}
	}
	all.Wait()
	t.Logf("%d whole, %d revoked in time", whole.Load(), cut.Load())
}

// BenchmarkPlace8MiB is BenchmarkRoundTrip8MiB one way, with and without a place.
func BenchmarkPlace8MiB(b *testing.B) {
	for name, place := range map[string]bool{"copied": false, "placed": true} {
		b.Run(name, func(b *testing.B) {
			const size = 8 << 20
			f := testFormat(b, "F")
			dst := make([]byte, size)
			p := newPlaces()
			p.dst = dst
			config := Config{Handler: p}
			if place {
				config.Place = func(_ Link, _ *ffs.Format, _ []byte, total int) *Placement {
					return Place(dst[:total-blobAt], blobAt)
				}
			}
			to, _ := open(b, config)
			from, _ := open(b, Config{})
			l := dial(b, from, to.Contact())
			out := record(f, 1, size)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Send(out); err != nil {
					b.Fatal(err)
				}
				in := <-p.in
				if in.Placed == nil {
					copy(dst, in.Data[blobAt:])
				}
				in.Free()
			}
		})
	}
}

//go:build linux

package carrier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// markOf asks the kernel.
func markOf(t *testing.T, conn *net.TCPConn) (n int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT) })
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return n
}

// markRecord is a record of one part, with a body that tells its place.
func markRecord(f *ffs.Format, n, size int) []byte {
	b := bytesOf(record(f, n, size))
	for i := 48; i+4 <= len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], uint32(n*7+i))
	}
	return b
}

// TestReadMark: large records and small ones, in whatever pieces they come, arrive
// whole, with a placement and without; and at rest the mark is down, so that every
// byte is seen.
func TestReadMark(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, placed := range []bool{false, true} {
		var place func(Link, *ffs.Format, []byte, int) *Placement
		if placed {
			place = func(_ Link, _ *ffs.Format, _ []byte, total int) *Placement {
				return Place(make([]byte, total-100), 100)
			}
		}
		rec := newPlacedRecorder()
		c, _ := open(t, Config{Handler: rec, Place: place})
		p := join(t, c, 77, 0)
		f := testFormat(t, "F")
		p.push(f)
		for n, size := range []int{10, 3 << 20, 10, markFrom - 1, markFrom, markFrom + 1, 1} {
			want := markRecord(f, n, size)
			out := cm.Data{Record: want}.Append(nil)
			go func() {
				for len(out) > 0 {
					k := min(len(out), 1+r.IntN(700<<10))
					if _, err := p.conn.Write(out[:k]); err != nil {
						t.Error(err)
						return
					}
					out = out[k:]
				}
			}()
			e := next(t, "record", rec.got)
			if !bytes.Equal(e.data, want) {
				t.Fatalf("placed %v: record %d of %d bytes is damaged", placed, n, size)
			}
			p.send(cm.Data{Record: bytesOf(record(f, n, 1))}.Append(nil))
			e = next(t, "small record behind it", rec.got)
			if got := markOf(t, e.link.(*link).conn); got > 1 {
				t.Errorf("placed %v: the mark is at %d after %d bytes", placed, got, size)
			}
		}
		_ = p.conn.Close()
	}
}

// placedRecorder keeps records with what was placed of them.
type placedRecorder struct{ got chan event }

func newPlacedRecorder() *placedRecorder { return &placedRecorder{make(chan event, 100)} }

func (p *placedRecorder) Message(l Link, in Inbound) {
	data := bytes.Clone(in.Data)
	if in.Placed != nil {
		b, _ := in.Placed.Bytes()
		data = append(data, b...)
	}
	in.Free()
	p.got <- event{link: l, data: data}
}

func (p *placedRecorder) Lost(Link, error) {}

// TestReadMarkAtTheEnd: a peer that dies with less than the mark on the way is
// noticed.
func TestReadMarkAtTheEnd(t *testing.T) {
	for _, cut := range []int{100, markBytes / 2, markBytes + 1000, 2 << 20} {
		c, r := open(t, Config{})
		p := join(t, c, 77, 0)
		f := testFormat(t, "F")
		p.push(f)
		p.send(cm.Data{Record: markRecord(f, 1, 3<<20)}.Append(nil)) // proven: the next is read in one piece
		next(t, "record", r.got)
		p.send(cm.Data{Record: markRecord(f, 2, 3<<20)}.Append(nil)[:cut])
		_ = p.conn.Close()
		if l := next(t, "end", r.lost); !errors.Is(l.err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, l.err)
		}
	}
}

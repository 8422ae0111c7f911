package provutil

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// TestLocalsOfWhatCanOnlyBeRead has a device that pins for writing, and memory that is not to be written: it is sent, and nothing is received there.
func TestLocalsOfWhatCanOnlyBeRead(t *testing.T) {
	page := os.Getpagesize()
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "read-only", Size: int64(2 * page)})
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	writable, err := sys.Map(fd, 0, 2*page, true)
	if err != nil {
		t.Fatal(err)
	}
	defer writable.Close()
	m, err := sys.Map(fd, 0, 2*page, false)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	for i := range writable.Bytes() {
		writable.Bytes()[i] = byte(i % 251)
	}
	l, d := locals(t, 1)
	d.locked = memmon.RangeOf(b)
	for what, k := range map[string]memmon.Kind{"raw": nil, "owned": memmon.Mapped(b, new(numbered)), "nobody's": memmon.Mapped(b, nil)} {
		s := &provider.Segment{Bytes: b[10 : page+10], Kind: k}
		x, err := l.Begin(s, ReadLocal)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !bytes.Equal(x.at(x.Handle, page), s.Bytes) {
			t.Errorf("%s: something else is sent", what)
		}
		if err := errors.Join(x.End(0), x.End(0)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := l.Begin(s, WriteLocal); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("%s: to be received there: %v", what, err)
		}
	}
	gone := &provider.Segment{Bytes: b, Kind: memmon.Mapped(b, new(restless))}
	if _, err := l.Begin(gone, ReadLocal); !errors.Is(err, provider.ErrRemapped) {
		t.Errorf("what can be read, but is not its owner's any more: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(&provider.Segment{Bytes: b}, ReadLocal); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("what is not mapped any more: %v", err)
	}
}

// restless is the owner of memory that has gone.
type restless struct{ numbered }

func (r *restless) Generation() uint64 { return r.gen.Add(1) }

func TestReadOnly(t *testing.T) {
	m, err := sys.MapAnonymous(os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if readOnly(m.Bytes()) {
		t.Error("it can be written: that is not why a device refuses it")
	}
}

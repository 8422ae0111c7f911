package loop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

func memories(t *testing.T, n *node, size int, a provider.Access) map[string]provider.Memory {
	t.Helper()
	arena, err := n.d.Alloc(size, a)
	if err != nil {
		t.Fatal(err)
	}
	heap, err := n.d.Register(memmon.HeapBytes(make([]byte, size)), a)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]provider.Memory{"arena": arena, "heap": heap}
}

// The target of an access makes no call.
func TestReadWrite(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		const size = 1 << 20
		for name, m := range memories(t, b, size+10, provider.PeerRead|provider.PeerWrite) {
			msg, back := fill(size, 9), make([]byte, size)
			a.must(a.ep.Write(provider.Op{Local: local(msg), Peer: to, Key: m.Key(), Offset: 10, Context: 1}))
			if c := a.wait(); c.Err != nil || c.Kind != provider.WriteDone || c.Len != size || c.Context != 1 {
				t.Fatalf("%s: %+v", name, c)
			}
			a.must(a.ep.Read(provider.Op{Local: local(back), Peer: to, Key: m.Key(), Offset: 10, Context: 2}))
			if c := a.wait(); c.Err != nil || c.Kind != provider.ReadDone || c.Len != size || c.Context != 2 {
				t.Fatalf("%s: %+v", name, c)
			}
			if !bytes.Equal(back, msg) {
				t.Fatalf("%s: other bytes", name)
			}
			half := []provider.RemoteSegment{{Key: m.Key(), Offset: 10 + size/2, Len: size / 2}, {Key: m.Key(), Offset: 10, Len: size / 2}}
			a.must(a.ep.Read(provider.Op{Local: local(back[:5]), Locals: []provider.Segment{local(back[5:])}, Peer: to, Remotes: half}))
			if c := a.wait(); c.Err != nil || !bytes.Equal(back[:size/2], msg[size/2:]) || !bytes.Equal(back[size/2:], msg[:size/2]) {
				t.Fatalf("%s: segments: %+v", name, c)
			}
		}
		b.none()
	})
}

func TestRemoteData(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		m := memories(t, b, 64, provider.PeerWrite)["arena"]
		a.must(a.ep.Write(provider.Op{Local: local([]byte("hello")), Peer: to, Key: m.Key(), Data: 42, Flags: provider.RemoteData | provider.Inject | provider.Quiet}))
		c := b.wait()
		if c.Kind != provider.RemoteWrite || c.Flags != provider.HasData || c.Data != 42 || c.Len != 5 || c.Context != 0 || c.Source == 0 {
			t.Fatalf("%+v", c)
		}
		if string(m.Bytes()[:5]) != "hello" {
			t.Fatal("the bytes come after the data")
		}
		a.none()
	})
}

func TestKeys(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		m := memories(t, b, 64, provider.PeerRead)["heap"]
		var buf [65]byte
		for _, o := range []provider.Op{
			{Local: local(buf[:65]), Key: m.Key()},
			{Local: local(buf[:1]), Key: m.Key(), Offset: 64},
			{Local: local(buf[:1]), Key: m.Key(), Offset: ^uint64(0) - 1},
			{Local: local(buf[:1]), Key: m.Key() + 1},
			{Local: local(buf[:1]), Key: 0},
		} {
			o.Peer = to
			a.must(a.ep.Read(o))
			if c := a.wait(); !errors.Is(c.Err, provider.ErrKey) {
				t.Errorf("%+v: %v", o, c.Err)
			}
		}
		a.must(a.ep.Write(provider.Op{Local: local(buf[:1]), Peer: to, Key: m.Key()}))
		if c := a.wait(); !errors.Is(c.Err, provider.ErrKey) {
			t.Errorf("write to read-only: %v", c.Err)
		}
		a.must(m.Close())
		a.must(m.Close())
		a.must(a.ep.Read(provider.Op{Local: local(buf[:1]), Peer: to, Key: m.Key()}))
		var oe *provider.OpError
		if c := a.wait(); !errors.Is(c.Err, provider.ErrKey) || !errors.As(c.Err, &oe) || oe.Addr != b.addr {
			t.Errorf("closed: %v", c.Err)
		}
	})
}

func TestAtomics(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Auto), open(t, p, provider.Manual)
	to := a.insert(b)
	for name, m := range memories(t, b, 64, provider.PeerRead|provider.PeerWrite) {
		word := func(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }
		result := make([]byte, 8)
		op := func(code provider.AtomicCode, x, compare []byte) uint64 {
			t.Helper()
			a.must(a.ep.Atomic(provider.Atomic{
				Op: provider.Op{Local: local(x), Peer: to, Key: m.Key(), Offset: 8}, Code: code, Type: provider.Uint64, Compare: compare, Result: result,
			}))
			if c := a.wait(); c.Err != nil || c.Kind != provider.AtomicDone || c.Len != 8 {
				t.Fatalf("%s: %+v", name, c)
			}
			return binary.NativeEndian.Uint64(result)
		}
		if v := op(provider.AtomicSum, word(5), nil); v != 0 {
			t.Errorf("%s: %d", name, v)
		}
		if v := op(provider.AtomicSwapEq, word(9), word(5)); v != 5 {
			t.Errorf("%s: %d", name, v)
		}
		if v := op(provider.AtomicRead, nil, nil); v != 9 {
			t.Errorf("%s: %d", name, v)
		}
	}
}

func TestView(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		ms := memories(t, b, 100, provider.PeerRead)
		m := ms["arena"]
		copy(m.Bytes(), "0123456789")
		v, err := a.d.View(t.Context(), to, m.Key(), 3, 4)
		if err != nil {
			t.Fatal(err)
		}
		if string(v.Bytes()) != "3456" {
			t.Errorf("%q", v.Bytes())
		}
		m.Bytes()[3] = 'x'
		if string(v.Bytes()) != "x456" {
			t.Errorf("%q: not the same memory", v.Bytes())
		}
		if s := a.d.Stats(); s.Views != 1 {
			t.Errorf("%+v", s)
		}
		a.must(m.Close())
		if string(v.Bytes()) != "x456" {
			t.Errorf("%q: after Close", v.Bytes())
		}
		v.Release()
		v.Release()
		if s := a.d.Stats(); s.Views != 0 {
			t.Errorf("%+v", s)
		}
		if _, err := a.d.View(t.Context(), to, m.Key(), 0, 1); !errors.Is(err, provider.ErrKey) {
			t.Error(err)
		}
		if _, err := a.d.View(t.Context(), to, ms["heap"].Key(), 0, 1); !errors.Is(err, provider.ErrNotSupported) {
			t.Error(err)
		}
	})
}

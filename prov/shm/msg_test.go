package shm

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8) + seed
	}
	return b
}

// Messages of all lengths, in the order of posting, both ways, in both modes.
func TestLengths(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: mode})
			for i, n := range []int{0, 1, 8, 4096, 4097, 65536, 65537, 300 << 10, 3 << 20} {
				msg, buf := pattern(n, byte(i)), make([]byte, n)
				b.must(b.ep.Recv(recvOp(buf, 7)))
				a.must(a.ep.Send(mk(msg, ab, 3)))
				var others []*side
				if mode == provider.Manual {
					others = []*side{a}
				}
				c := b.good(b.wait(others...), provider.RecvDone, 7)
				if c.Len != uint64(n) || !bytes.Equal(buf, msg) {
					t.Fatalf("%d bytes: %+v", n, c)
				}
				if mode == provider.Manual {
					others = []*side{b}
				}
				a.good(a.wait(others...), provider.SendDone, 3)
			}
		})
	}
}

// An endpoint sends to itself by the same ways.
func TestSelf(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			a := newSide(t, provider.DomainConfig{Progress: mode}, provider.EndpointConfig{})
			me := a.insert(a.ep.Address())
			for i, n := range []int{0, 8, 5000, 70000, 1 << 20} {
				msg, buf := pattern(n, byte(i)), make([]byte, n)
				a.must(a.ep.SendTagged(provider.Op{Local: provider.Segment{Bytes: msg}, Peer: me, Tag: 5, Context: 1}))
				a.must(a.ep.RecvTagged(provider.Op{Local: provider.Segment{Bytes: buf}, Tag: 5, Context: 2}))
				seen := map[uint64]provider.Completion{}
				for range 2 {
					c := a.wait()
					seen[c.Context] = c
				}
				a.good(seen[1], provider.TSendDone, 1)
				c := a.good(seen[2], provider.TRecvDone, 2)
				if c.Source != me || c.Tag != 5 || !bytes.Equal(buf, msg) {
					t.Fatalf("%d bytes: %+v", n, c)
				}
			}
		})
	}
}

// Arena messages go by descriptor.
func TestArenaMessage(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	for i, n := range []int{100, 5000, 100 << 10, 2 << 20} {
		m, err := a.d.Alloc(n+64, 0)
		if err != nil {
			t.Fatal(err)
		}
		copy(m.Bytes()[64:], pattern(n, byte(i)))
		a.must(a.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes()[64:], Memory: m}, Peer: ab, Context: 1}))
		buf := make([]byte, n)
		b.must(b.ep.Recv(recvOp(buf, 2)))
		b.good(b.wait(), provider.RecvDone, 2)
		a.good(a.wait(), provider.SendDone, 1)
		if !bytes.Equal(buf, pattern(n, byte(i))) {
			t.Fatalf("%d bytes are others", n)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// F35: many unexpected messages of every protocol, taken in reverse order of tags.
func TestF35ManyUnexpected(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	const count = 100
	sizes := []int{4095, 4096, 4097, 65536, 70000}
	sent := 0
	for i := range count {
		for j, n := range sizes {
			tag := uint64(i*len(sizes) + j)
			a.must(a.ep.SendTagged(provider.Op{Local: provider.Segment{Bytes: pattern(n, byte(tag))}, Peer: ab, Tag: tag, Context: tag}))
			sent++
		}
	}
	bufs := make([][]byte, sent)
	for tag := sent - 1; tag >= 0; tag-- {
		bufs[tag] = make([]byte, sizes[tag%len(sizes)])
		b.must(b.ep.RecvTagged(provider.Op{Local: provider.Segment{Bytes: bufs[tag]}, Tag: uint64(tag), Context: uint64(tag)}))
	}
	for range sent {
		if c := b.wait(); c.Err != nil || c.Tag != c.Context {
			t.Fatalf("%+v", c)
		}
		if c := a.wait(); c.Err != nil {
			t.Fatalf("%+v", c)
		}
	}
	for tag, b := range bufs {
		if !bytes.Equal(b, pattern(len(b), byte(tag))) {
			t.Errorf("message %d is another", tag)
		}
	}
}

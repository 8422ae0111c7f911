package shm

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// growing sends a message of which the bytes are not there yet, and returns its block. skew moves where the message says that
// it lies.
func (s *side) growing(to provider.Peer, msg []byte, skew uint64) *bounce {
	s.t.Helper()
	s.d.core.Lock()
	defer s.d.core.Unlock()
	p := s.d.pairs[0]
	block := p.takeBlock(true)
	if block == nil {
		s.t.Fatal("no block")
	}
	block.grown.Store(0)
	send := mk(msg, to, 9)
	o := p.newOp(provider.SendDone, &send)
	if !p.place(o, &record{op: opPlaced, flags: recGrows, context: o.id, words: [3]uint64{0, place(block.seg, len(msg)), block.off + skew}}) {
		s.t.Fatal("no room")
	}
	o.block, o.role = block, roleAck
	p.publish()
	return block
}

// grow copies more of it.
func (s *side) grow(block *bounce, from []byte, said uint64) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	copy(block.bytes, from)
	block.grown.Store(said)
	s.d.pairs[0].ring()
}

// connected are two sides that have each other's lanes.
func connected(t *testing.T, c provider.DomainConfig) (x, y *side, to provider.Peer) {
	t.Helper()
	x, y, to, _ = twoSides(t, c)
	x.must(y.ep.Recv(recvOp(make([]byte, 8), 1)))
	x.must(x.ep.Send(mk(make([]byte, 8), to, 2)))
	y.good(y.wait(x), provider.RecvDone, 1)
	x.good(x.wait(y), provider.SendDone, 2)
	return x, y, to
}

// A message that grows while it is received ends when all of it is there, whether its receive comes before or after.
func TestGrowingMessage(t *testing.T) {
	const n = 3*growPiece + 100
	msg := pattern(n, 3)
	for _, early := range []bool{true, false} {
		x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
		in := make([]byte, n)
		if early {
			x.must(y.ep.Recv(recvOp(in, 5)))
		}
		block := x.growing(to, pattern(n, 3), 0)
		y.drainSome()
		if !early {
			x.must(y.ep.Recv(recvOp(in, 5)))
		}
		for _, part := range []int{0, 1, growPiece, growPiece, n - 1} {
			x.grow(block, msg[:part], uint64(part))
			y.drainSome()
			if !bytes.Equal(in[:part], msg[:part]) {
				t.Errorf("the first %d bytes are there and were not taken", part)
			}
			if posted := y.ep.(*endpoint).receives; posted != 1 {
				t.Fatalf("the receive has ended after %d bytes of %d", part, n)
			}
		}
		x.grow(block, msg, 1<<60) // more than there is counts as all
		if c := y.good(y.wait(x), provider.RecvDone, 5); c.Len != n || !bytes.Equal(in, msg) {
			t.Errorf("%d bytes, equal %v", c.Len, bytes.Equal(in, msg))
		}
		x.good(x.wait(y), provider.SendDone, 9)
	}
}

// Who sleeps is told of the end of a message that grows.
func TestGrowingMessageWakes(t *testing.T) {
	x, y, to := connected(t, provider.DomainConfig{})
	in := make([]byte, eagerMax)
	x.must(y.ep.Recv(recvOp(in, 5)))
	ended := make(chan provider.Completion, 1)
	go func() {
		var c [1]provider.Completion
		_, _ = y.cq.Wait(t.Context(), c[:]) // the completion tells
		ended <- c[0]
	}()
	x.growing(to, pattern(len(in), 4), 0)
	asleep := func() bool {
		y.d.core.Lock()
		defer y.d.core.Unlock()
		return y.d.epoch&1 == 1 && y.d.pairs[0].copies.len() == 1 && y.d.home.armed.Load() != x.d.pairs[0].rung
	}
	testutil.Eventually(t, "the message is taken, and the receiver asleep", asleep)
	x.d.core.Lock()
	p := x.d.pairs[0]
	p.grow(p.live.tail)
	x.d.core.Unlock()
	select {
	case c := <-ended:
		y.good(c, provider.RecvDone, 5)
	case <-time.After(20 * time.Second):
		t.Fatal("nobody woke it")
	}
	if !bytes.Equal(in, pattern(len(in), 4)) {
		t.Error("other bytes")
	}
}

// A message that has not grown up when its sender goes was not sent; one that has was.
func TestGrowingMessageOfTheDead(t *testing.T) {
	const n = 2 * growPiece
	for _, part := range []int{0, 1, n - 1, n} {
		x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
		in := make([]byte, n)
		x.must(y.ep.Recv(recvOp(in, 5)))
		block := x.growing(to, pattern(n, 3), 0)
		y.drainSome()
		x.d.core.Lock()
		copy(block.bytes, pattern(part, 1))
		block.grown.Store(uint64(part))
		p := x.d.pairs[0]
		x.d.unwatch(p.sock.FD, p.token) // as a killed process: without a word
		p.token = 0
		_ = p.sock.Close()
		x.d.core.Unlock()
		switch c := y.wait(); {
		case part == n && (c.Err != nil || c.Len != n):
			t.Error(c.Len, c.Err)
		case part < n && (!errors.Is(c.Err, provider.ErrPeerGone) || c.Len != 0):
			t.Error(part, c.Len, c.Err)
		}
	}
}

// A message that says that it grows where no word can be is a breach.
func TestGrowingMessageNowhere(t *testing.T) {
	for _, skew := range []uint64{1, 4, 1 << 30, ^uint64(grownOff)} {
		x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
		x.must(y.ep.Recv(recvOp(make([]byte, growPiece), 5)))
		x.growing(to, make([]byte, growPiece), skew)
		if c := y.wait(x); !errors.Is(c.Err, provider.ErrPeerGone) {
			t.Errorf("at %#x: %v", skew, c.Err)
		}
		progress(t, "dropped", func() bool { return y.d.Stats().Peers == 0 }, y)
	}
}

// A short message does not overtake one that grows, whether the receives come before or after.
func TestGrowingMessageFirst(t *testing.T) {
	const n = 2 * growPiece
	for _, early := range []bool{true, false} {
		x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
		receive := func() {
			x.must(y.ep.Recv(recvOp(make([]byte, n), 5)))
			x.must(y.ep.Recv(recvOp(make([]byte, n), 6)))
		}
		if early {
			receive()
		}
		block := x.growing(to, pattern(n, 3), 0)
		x.must(x.ep.Send(mk(make([]byte, 8), to, 3)))
		var c [4]provider.Completion
		for range 3 {
			if k, _ := y.cq.Read(c[:]); k != 0 {
				t.Fatalf("%+v", c[:k])
			}
		}
		if !early {
			receive()
		}
		x.grow(block, pattern(n, 3), n)
		y.good(y.wait(x), provider.RecvDone, 5)
		y.good(y.wait(x), provider.RecvDone, 6)
	}
}

package loop

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"pgregory.net/rapid"
)

// A fifo against a slice.
func TestFifoModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo[int]
		var want []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				f.push(next)
				want = append(want, next)
				next++
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				if first := *f.first(); first != want[0] {
					t.Fatalf("first is %d, want %d", first, want[0])
				}
				if got := f.pop(); got != want[0] {
					t.Fatalf("%d, want %d", got, want[0])
				}
				want = want[1:]
			},
			"drop": func(t *rapid.T) {
				by := rapid.IntRange(1, 4).Draw(t, "by")
				match := func(v int) bool { return v%by == 0 }
				f.drop(match)
				want = slices.DeleteFunc(slices.Clone(want), match)
			},
			"": func(t *rapid.T) {
				if f.len() != len(want) {
					t.Fatalf("%d, want %d", f.len(), len(want))
				}
			},
		})
	})
}

// A fifo lets go of what it has given out.
func TestFifoLetsGo(t *testing.T) {
	var f fifo[*int]
	for range 5 {
		f.push(new(int))
	}
	for f.len() > 0 {
		f.pop()
	}
	for i, p := range f.ring {
		if p != nil {
			t.Errorf("place %d holds on", i)
		}
	}
}

// The receiver is told of the first packet after it found nothing, the sender of room once, when half of the lane is free.
func TestLaneTells(t *testing.T) {
	l := lane{limit: 8}
	for round := range 3 {
		for i := range 8 {
			if !l.hasRoom() {
				t.Fatalf("round %d: no room for packet %d", round, i)
			}
			if tell := l.put(packet{tag: uint64(i)}); tell != (i == 0) {
				t.Errorf("round %d, packet %d: told %v", round, i, tell)
			}
		}
		if l.hasRoom() {
			t.Fatal("room for nine")
		}
		for i := range 8 {
			if p, ok := l.peek(); !ok || p.tag != uint64(i) {
				t.Fatalf("packet %d is %+v, %v", i, p, ok)
			}
			if tell := l.pop(); tell != (i == 3) {
				t.Errorf("round %d, after packet %d: told of room %v", round, i, tell)
			}
		}
		if _, ok := l.peek(); ok {
			t.Fatal("a ninth")
		}
	}
	b := l.buffer(100)
	l.giveBack(b)
	if c := l.buffer(80); &b[0] != &c[0] {
		t.Error("memory is not used again")
	}
	l.giveBack(nil)
}

// A loan that has ended, or is another one by now, gives nothing; one that is described anew gives the same bytes.
func TestLoan(t *testing.T) {
	var b loan
	src, dst := fill(1000, 3), make([]byte, 1000)
	to := provutil.Vector{First: dst}
	no := b.lend(provutil.Vector{First: src[:400], More: []provider.Segment{local(src[400:])}})
	if n, ok := b.copyOut(no, to, 0, 0, 500); n != 500 || !ok {
		t.Error(n, ok)
	}
	b.relend(provutil.Vector{First: src})
	if n, ok := b.copyOut(no, to, 500, 500, 1000); n != 500 || !ok || !bytes.Equal(src, dst) {
		t.Error(n, ok)
	}
	if !b.open(no) || b.open(no+1) {
		t.Error("which loan is open")
	}
	b.end()
	second := b.lend(provutil.Vector{First: make([]byte, 1000)})
	if n, ok := b.copyOut(no, to, 0, 0, 1000); n != 0 || ok || b.open(no) || second == no {
		t.Errorf("the loan that has ended gives %d bytes, %v", n, ok)
	}
	if !bytes.Equal(src, dst) {
		t.Error("bytes were written for a loan that has ended")
	}
}

// After end returns nobody reads the buffer: the race detector looks.
func TestLoanEndIsABarrier(t *testing.T) {
	var b loan
	for range 200 {
		src := make([]byte, 4096)
		no := b.lend(provutil.Vector{First: src})
		var all sync.WaitGroup
		all.Go(func() {
			dst := provutil.Vector{First: make([]byte, 4096)}
			for ok := true; ok; {
				_, ok = b.copyOut(no, dst, 0, 0, 4096)
			}
		})
		b.end()
		src[0] = 1
		all.Wait()
	}
}

// A mailbox rings its domain once for each time it is armed, loses nothing, and drops what comes after close.
func TestMailbox(t *testing.T) {
	e := engine{d: &domain{}, bell: make(chan struct{}, 1)}
	m := &e.d.mail
	m.engine = &e
	if m.put(event{op: 1}) {
		t.Error("rang without need")
	}
	if !e.Arm() {
		t.Error("arming does not see what has come")
	}
	if !m.put(event{op: 2}) || m.put(event{op: 3}) {
		t.Error("not one ring for one arming")
	}
	e.Park() // rung
	e.Disarm()
	for round := range 3 {
		got := m.take()
		var ops []uint64
		for _, ev := range got {
			ops = append(ops, ev.op)
		}
		if round == 0 && !slices.Equal(ops, []uint64{1, 2, 3}) || round > 0 && len(ops) != 1 {
			t.Errorf("round %d: %v", round, ops)
		}
		if m.take() != nil {
			t.Error("taken twice")
		}
		m.put(event{op: 9})
	}
	m.take()
	if e.Arm() {
		t.Error("arming sees what is not there")
	}
	m.close()
	if m.put(event{}) || m.take() != nil {
		t.Error("something came after close")
	}
}

package fabrictest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

// atomicPieces is an atomic operation on several pieces: where its elements are, and in which order.
type atomicPieces struct {
	code   provider.AtomicCode
	typ    provider.DataType
	counts []int // elements of each remote piece
	locals []int // bytes of each local piece but the last; they need not be whole elements
	odd    int   // bytes by which the targets are not aligned
}

// testAtomicPieces: an atomic operation with operands in several segments, or elements in several places of several kinds of
// memory, is the same as one after the other.
func testAtomicPieces(e *env) {
	if l := e.info.Limits; l.Segments == 1 && l.Remotes == 1 {
		e.Skipf("one segment on each side is all that it takes")
	}
	a, b := e.pair()
	to := a.knows(b)
	var targets []mem
	for _, kind := range e.remoteKinds() {
		targets = append(targets, b.mem(kind, 4096, readWrite))
	}
	codes := []provider.AtomicCode{provider.AtomicSum, provider.AtomicRead, provider.AtomicWrite, provider.AtomicSwapNe, provider.AtomicMaskSwap, provider.AtomicMin}
	for _, typ := range []provider.DataType{provider.Uint8, provider.Int16, provider.Uint32, provider.Int64, provider.Complex128} {
		size := typ.Size()
		for _, code := range codes {
			if !validAtomic(code, typ) {
				continue
			}
			for _, p := range []atomicPieces{
				{counts: []int{5}, locals: []int{size}},
				{counts: []int{4}, locals: []int{0, 2*size - size/2, 1}},
				{counts: []int{1, 1}},
				{counts: []int{2, 1, 4}},
				{counts: []int{3, 2}, locals: []int{size, size + 1}},
				{counts: []int{1, 2, 1}, odd: 1},
			} {
				p.code, p.typ = code, typ
				if l := e.info.Limits; l.Segments > 0 && len(p.locals) >= l.Segments || l.Remotes > 0 && len(p.counts) > l.Remotes {
					continue
				}
				e.atomicPieces(a, b, to, targets, p)
			}
		}
	}
	e.atomicPieceErrors(a, b, to, targets[0])
	e.atomicInject(a, b, to, targets)
}

// atomicPieces runs one operation, and compares target and result with the model.
func (e *env) atomicPieces(a, b *side, to provider.Peer, targets []mem, p atomicPieces) {
	e.Helper()
	size, count := p.typ.Size(), 0
	for _, n := range p.counts {
		count += n
	}
	n := size * count
	old, operand, comparand := e.elements(p.typ, count), e.elements(p.typ, count), e.elements(p.typ, count)
	copy(comparand, old[:n/2])
	op := opSpec{Kind: provider.AtomicDone, Peer: to, Code: p.code, Type: p.typ, Context: 8}
	x, compare, result := a.heap(n, 0), a.heap(n, 0), a.heap(n, 0)
	a.set(x, 0, operand)
	a.set(compare, 0, comparand)
	if p.code != provider.AtomicRead {
		op.Segs = cutSegs(x, p.locals)
	}
	if p.code >= provider.AtomicSwapEq {
		op.Compare = ptr(compare.all())
	}
	brings := p.code == provider.AtomicRead || e.rnd.IntN(3) > 0
	if brings {
		op.Result = ptr(result.all())
	}
	// Far apart, from the end to the start, in all kinds of memory.
	var places []seg
	for i, c := range p.counts {
		m, off := targets[i%len(targets)], 2048-512*i+p.odd
		b.set(m, off-8, make([]byte, 512))
		b.set(m, off, cutPiece(old, p.counts, i, size))
		places = append(places, m.part(off-8, c*size+16))
		if len(p.counts) == 1 {
			op.Key, op.Offset = m.key, m.at(off)
		} else {
			op.Remotes = append(op.Remotes, provider.RemoteSegment{Key: m.key, Offset: m.at(off), Len: uint64(c * size)})
		}
	}
	a.post(op)
	c := a.one(provider.AtomicDone, 8)
	what := fmt.Sprintf("atomic %d on type %d in pieces of %v elements, operands cut at %v", p.code, p.typ, p.counts, p.locals)
	if c.Len != uint64(n) {
		e.Fatalf("%s: %s", what, show(c))
	}
	if brings {
		if got := a.get(result.all()); !bytes.Equal(got, old) {
			e.Fatalf("%s: the result is %x, want %x", what, got, old)
		}
	}
	want := bytes.Clone(old)
	for i := range count {
		model(p.code, p.typ, want[i*size:(i+1)*size], operand[i*size:], comparand[i*size:])
	}
	for i, place := range places {
		around := make([]byte, 8)
		whole := append(append(around, cutPiece(want, p.counts, i, size)...), make([]byte, 8)...)
		if got := b.get(place); !bytes.Equal(got, whole) {
			e.Fatalf("%s: piece %d is %x, want %x with 8 bytes around it", what, i, got, whole)
		}
	}
}

// cutSegs cuts a buffer: the last piece is what is left.
func cutSegs(m mem, lengths []int) []seg {
	var list []seg
	at := 0
	for _, n := range lengths {
		list = append(list, m.part(at, n))
		at += n
	}
	return append(list, m.part(at, m.n-at))
}

// cutPiece is the bytes of a remote piece.
func cutPiece(b []byte, counts []int, i, size int) []byte {
	at := 0
	for _, c := range counts[:i] {
		at += c * size
	}
	return b[at : at+counts[i]*size]
}

// atomicPieceErrors: a piece without a right or a place fails the operation; pieces that make no sense are refused.
func (e *env) atomicPieceErrors(a, b *side, to provider.Peer, target mem) {
	e.Helper()
	if l := e.info.Limits; l.Remotes == 1 {
		return
	}
	x := a.heap(16, 1)
	closed := b.private(64, 1, provider.PeerRead)
	good := provider.RemoteSegment{Key: target.key, Offset: target.at(0), Len: 8}
	op := opSpec{Kind: provider.AtomicDone, Peer: to, Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.all()}, Context: 3}
	for what, bad := range map[string]provider.RemoteSegment{
		"without the right to write": {Key: closed.key, Offset: closed.at(0), Len: 8},
		"behind the end":             {Key: target.key, Offset: target.at(target.n - 4), Len: 8},
	} {
		op.Remotes = []provider.RemoteSegment{good, bad}
		e.refused(a, "an atomic of which a piece is "+what, op, provider.ErrKey)
		op.Remotes = []provider.RemoteSegment{bad, good}
		e.refused(a, "an atomic of which the first piece is "+what, op, provider.ErrKey)
	}
	b.holds("memory that peers may only read", closed.all(), 1)
	for what, lens := range map[string][]uint64{"too short": {8}, "too long": {8, 16}, "half elements": {4, 12}, "no elements": {8, 0, 8}} {
		op.Remotes = nil
		for _, n := range lens {
			op.Remotes = append(op.Remotes, provider.RemoteSegment{Key: target.key, Offset: target.at(0), Len: n})
		}
		if err := a.tryPost(op); !errors.Is(err, provider.ErrInvalid) {
			e.Fatalf("an atomic with pieces that are %s: %v", what, err)
		}
	}
	a.none("an atomic that was refused")
}

// atomicInject (F43): with Inject the operands are the program's again when the post returns; what brings something has none.
func (e *env) atomicInject(a, b *side, to provider.Peer, targets []mem) {
	e.Helper()
	for _, target := range targets {
		for _, off := range []int{64, 65} { // one that the CPU does at once, one that it does not
			b.set(target, off, make([]byte, 8))
			x := a.heap(8, 0)
			var want uint64
			for i := range uint64(20) {
				a.set(x, 0, binary.NativeEndian.AppendUint64(nil, 1<<i))
				want += 1 << i
				op := opSpec{Kind: provider.AtomicDone, Peer: to, Key: target.key, Offset: target.at(off), Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.all()}}
				a.post(op.with(provider.Inject, 0))
				a.set(x, 0, make([]byte, 8))
				if i == 0 {
					op.Result = ptr(x.all())
					if err := a.tryPost(op.with(provider.Inject, 0)); !errors.Is(err, provider.ErrInvalid) {
						e.Fatalf("an injected atomic with a result: %v", err)
					}
				}
			}
			a.take(20)
			if got := binary.NativeEndian.Uint64(b.get(target.part(off, 8))); got != want {
				e.Fatalf("injected sums make %#x, want %#x", got, want)
			}
		}
	}
}

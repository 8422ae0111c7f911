package fabrictest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// testAtomics runs every code on every type against a model, with and without a result, on each kind of memory.
// A combination that makes no sense is refused by all providers alike: see validAtomic.
func testAtomics(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for _, kind := range e.remoteKinds() {
		target := b.mem(kind, 4096, readWrite)
		x, result := a.heap(1024, 0), a.heap(1024, 0)
		compare := a.heap(1024, 0)
		for code := provider.AtomicMin; code <= provider.AtomicMaskSwap; code++ {
			for typ := provider.Int8; typ <= provider.Complex128; typ++ {
				op := opSpec{Kind: provider.AtomicDone, Peer: to, Key: target.key, Code: code, Type: typ}
				if !validAtomic(code, typ) {
					op.Segs = []seg{x.part(0, typ.Size())}
					op.Offset = target.at(0)
					if err := a.tryPost(op); !errors.Is(err, provider.ErrInvalid) && !errors.Is(err, provider.ErrNotSupported) {
						e.Fatalf("atomic %d on type %d makes no sense, but: %v", code, typ, err)
					}
					continue
				}
				for _, count := range []int{1, 3} {
					e.atomic(a, b, op, target, x, compare, result, count)
				}
			}
		}
		e.atomicErrors(a, to, target, x)
		e.atomicRights(a, b, to, kind)
	}
}

// atomic runs one operation on count elements and compares target and result with the model.
func (e *env) atomic(a, b *side, op opSpec, target, x, compare, result mem, count int) {
	e.Helper()
	size := op.Type.Size()
	n, off := count*size, 64
	old, operand, comparand := e.elements(op.Type, count), e.elements(op.Type, count), e.elements(op.Type, count)
	if e.rnd.IntN(2) == 0 {
		comparand = bytes.Clone(old)
	}
	b.set(target, off, old)
	a.set(x, 0, operand)
	a.set(compare, 0, comparand)
	op.Offset, op.Context = target.at(off), 8
	swaps := op.Code >= provider.AtomicSwapEq
	if op.Code != provider.AtomicRead {
		op.Segs = []seg{x.part(0, n)}
	}
	if swaps {
		p := compare.part(0, n)
		op.Compare = &p
	}
	brings := op.Code == provider.AtomicRead || e.rnd.IntN(2) == 0
	if brings {
		p := result.part(0, n)
		op.Result = &p
	}
	a.post(op)
	c := a.one(provider.AtomicDone, 8)
	what := fmt.Sprintf("atomic %d on %d elements of type %d, old %x operand %x compare %x", op.Code, count, op.Type, old, operand, comparand)
	if c.Len != uint64(n) {
		e.Fatalf("%s: %s", what, show(c))
	}
	if brings {
		if got := a.get(result.part(0, n)); !bytes.Equal(got, old) {
			e.Fatalf("%s: the result is %x", what, got)
		}
	}
	want := bytes.Clone(old)
	for i := range count {
		model(op.Code, op.Type, want[i*size:(i+1)*size], operand[i*size:], comparand[i*size:])
	}
	if got := b.get(target.part(off, n)); !bytes.Equal(got, want) {
		e.Fatalf("%s: the target has %x, want %x", what, got, want)
	}
}

// elements are random ones, small enough for exact floating-point results; zeros are frequent.
func (e *env) elements(t provider.DataType, count int) []byte {
	var b []byte
	small := func() int { return e.rnd.IntN(4) * (e.rnd.IntN(61) - 30) }
	for range count {
		switch t {
		case provider.Float32:
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(small())))
		case provider.Float64:
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(float64(small())))
		case provider.Complex64:
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(small())))
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(small())))
		case provider.Complex128:
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(float64(small())))
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(float64(small())))
		default:
			var v [8]byte
			binary.NativeEndian.PutUint64(v[:], e.rnd.Uint64())
			if e.rnd.IntN(3) == 0 {
				v = [8]byte{}
			}
			b = append(b, v[:t.Size()]...)
		}
	}
	return b
}

// atomicErrors: what has no right or no place ends with ErrKey.
func (e *env) atomicErrors(a *side, to provider.Peer, target, x mem) {
	e.Helper()
	op := opSpec{Kind: provider.AtomicDone, Peer: to, Key: target.key, Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.part(0, 8)}, Context: 3}
	past := op
	past.Offset = target.at(4096)
	e.refused(a, "an atomic behind the end", past, provider.ErrKey)
	unknown := op
	unknown.Key, unknown.Offset = 0x5eed5eed5eed5eed, target.at(0)
	e.refused(a, "an atomic by a key that never was", unknown, provider.ErrKey)
}

// atomicRights: every atomic operation, also one that only reads, needs the right to write, and that suffices.
func (e *env) atomicRights(a, b *side, to provider.Peer, kind string) {
	e.Helper()
	x, result := a.heap(8, 1), a.heap(8, 0)
	reads, writes := b.mem(kind, 64, provider.PeerRead), b.mem(kind, 64, provider.PeerWrite)
	b.fill(reads.all(), 2)
	r := result.all()
	sum := opSpec{Kind: provider.AtomicDone, Peer: to, Key: reads.key, Offset: reads.at(0), Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.all()}, Context: 3}
	read := sum
	read.Code, read.Segs, read.Result = provider.AtomicRead, nil, &r
	e.refused(a, "an atomic sum without the right to write", sum, provider.ErrKey)
	e.refused(a, "an atomic read without the right to write", read, provider.ErrKey)
	b.holds("memory that peers may only read", reads.all(), 2)
	for _, op := range []opSpec{sum, read} {
		op.Key, op.Offset, op.Result = writes.key, writes.at(0), &r
		a.post(op)
		a.one(provider.AtomicDone, 3)
	}
	if got, want := a.get(r), a.get(x.all()); !bytes.Equal(got, want) {
		e.Fatalf("0 + %x in memory that peers may write is read as %x", want, got)
	}
}

// testAtomicity: sums from several processes at once, also into the same words, add up.
func testAtomicity(e *env) {
	owner := e.side(0)
	owner.open(e.spec())
	for _, kind := range e.remoteKinds() {
		target := owner.mem(kind, 64, readWrite)
		const workers, each = 3, 300
		var sides []*side
		var ops []opSpec
		for i := range workers {
			s := e.side(i)
			s.open(e.spec())
			x := s.heap(16, 0)
			one := binary.NativeEndian.AppendUint64(nil, 1)
			s.set(x, 0, append(one, one...))
			sides = append(sides, s)
			ops = append(ops, opSpec{
				Kind: provider.AtomicDone, Peer: s.knows(owner), Key: target.key, Offset: target.at(8),
				Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.all()},
			})
		}
		for range each / 50 {
			var all sync.WaitGroup
			for i, s := range sides {
				if s.remote == nil {
					all.Go(func() {
						for range 50 {
							if r := s.local.do(request{Verb: "post", Op: &ops[i]}); r.Err != nil {
								e.Errorf("an atomic was refused: %s", r.Err.Text)
							}
						}
					})
					continue
				}
				for range 50 {
					s.start(request{Verb: "post", Op: &ops[i]})
				}
			}
			for i, s := range sides {
				if s.remote == nil {
					continue
				}
				for range 50 {
					if _, err := s.join(); err != nil {
						e.Fatalf("worker %d: %v", i, err)
					}
				}
			}
			all.Wait()
		}
		for _, s := range sides {
			for _, c := range s.take(each) {
				if c.Err != nil {
					e.Fatal(c.Err)
				}
			}
		}
		got := owner.get(target.part(8, 16))
		for i := range 2 {
			if n := binary.NativeEndian.Uint64(got[8*i:]); n != workers*each {
				e.Fatalf("%d additions of 1 to %s memory make %d", workers*each, kind, n)
			}
		}
	}
}

package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

const maxAtomic = 1024 // bytes of an atomic operation

// atomicOp is what an atomic operation has besides.
type atomicOp struct {
	code            provider.AtomicCode
	kind            provider.DataType
	compare, result []byte
}

// The word "kind" of opAtomic: code, type, and the bytes at the target.
//
//	bits 0-7 code | 8-15 type | 16-31 bytes | 32 there are compares behind the operands
const atomicCompares = 1 << 32

// Atomic runs an atomic operation on a peer's memory.
func (ep *endpoint) Atomic(a provider.Atomic) error {
	d := ep.d
	err := provider.CheckAtomic(&d.info.Limits, &a)
	if err == nil {
		d.core.Lock()
		err = ep.atomic(&a)
		d.core.Unlock()
	}
	if err != nil || d.tracer.Post != nil {
		return d.posted(provider.AtomicDone, &a.Op, err)
	}
	return nil
}

func (ep *endpoint) atomic(a *provider.Atomic) error {
	p, err := ep.begin(provider.AtomicDone, &a.Op)
	if err != nil {
		return err
	}
	n := p.newOp(provider.AtomicDone, &a.Op)
	n.atomic = atomicOp{a.Code, a.Type, a.Compare, a.Result}
	n.length = uint64(a.Target())
	p.rmas.push(n)
	p.start()
	p.out(a.Flags)
	return nil
}

// startAtomic does each piece on the mapped memory, if the CPU can, or asks the peer. False if it has to wait, or failed.
func (p *pair) startAtomic(o *op) bool {
	for !o.started() {
		piece := o.following()
		s, found, err := p.hold(piece, o.kind)
		switch found {
		case foundError:
			o.err = err
			return false
		case foundLater:
			return false
		case foundSpot:
			direct := provutil.Direct(o.atomic.kind, s.bytes)
			if direct {
				p.applyAtomic(o, s.bytes)
			}
			p.drop(s)
			if direct {
				o.step()
				continue
			}
		}
		if !p.askAtomic(o, piece) {
			return false
		}
	}
	return true
}

// applyAtomic does the piece that is next.
func (p *pair) applyAtomic(o *op, target []byte) {
	x := &o.atomic
	p.d.atomics.ApplyPart(x.code, x.kind, target, o.local.Joined(p.d.old[:]), x.compare, x.result, o.start)
}

// askAtomic has the peer do a piece; false if there is no room for the request.
func (p *pair) askAtomic(o *op, s provider.RemoteSegment) bool {
	if p.replies.len() > 0 || p.asked >= maxAsked {
		return false
	}
	x := &o.atomic
	kind := uint64(x.code) | uint64(x.kind)<<8 | s.Len<<16
	operands, compares := int(s.Len), 0
	if x.code == provider.AtomicRead {
		operands = 0
	}
	if x.compare != nil {
		kind |= atomicCompares
		compares = int(s.Len)
	}
	r := record{op: opAtomic, flags: recData, context: o.id, words: [3]uint64{uint64(s.Key), s.Offset, kind}, data: o.start}
	if x.result != nil {
		r.flags |= recResult
	}
	b, err := p.control.Reserve(recordLen(r.op, r.flags) + operands + compares)
	if err != nil {
		return p.noRoom(err)
	}
	n := r.put(b)
	o.local.Gather(o.start, b[n:n+operands])
	if compares > 0 {
		copy(b[n+operands:], x.compare[o.start:o.start+s.Len])
	}
	p.control.Commit()
	p.controlSent++
	o.pending++
	p.asked++
	o.step()
	return true
}

// serveAtomic does one for the peer.
func (p *pair) serveAtomic(r *record) error {
	code, kind, n := provider.AtomicCode(r.words[2]), provider.DataType(r.words[2]>>8), r.words[2]>>16&0xffff
	operand := r.payload
	var compare []byte
	if r.words[2]&atomicCompares != 0 {
		if uint64(len(operand)) < n {
			return fmt.Errorf("%w: atomic operation on %d bytes with %d", errRecord, n, len(operand))
		}
		operand, compare = operand[:len(operand)-int(n)], operand[len(operand)-int(n):]
	}
	want := n
	if code == provider.AtomicRead {
		want = 0
	}
	if n > maxAtomic || n == 0 || uint64(len(operand)) != want || !code.Fits(kind) || n%uint64(kind.Size()) != 0 {
		return fmt.Errorf("%w: atomic operation %d of type %d on %d bytes", errRecord, code, kind, n)
	}
	b, status := p.d.arena.find(provider.Key(r.words[0])).slice(r.words[1], n, provider.PeerWrite)
	answer := record{op: opOld, flags: r.flags & recData, status: status, context: r.context, data: r.data}
	if status == statusOK {
		var old []byte
		if r.flags&recResult != 0 {
			old = p.d.old[:n]
		}
		// The operands are the peer's memory still: what it makes of them meanwhile is its own harm.
		p.d.atomics.Apply(code, kind, b, operand, compare, old)
		answer.payload = old
	}
	p.say(&answer)
	return nil
}

// old is the answer.
func (p *pair) old(r *record) error {
	o, err := p.mineOf(r, roleMoving)
	if err != nil {
		return err
	}
	want := uint64(0)
	if o.atomic.result != nil && r.status == statusOK {
		want = o.pieceAt(r.data)
	}
	if o.kind != provider.AtomicDone || uint64(len(r.payload)) != want {
		return fmt.Errorf("%w: %d old bytes at %d", errRecord, len(r.payload), r.data)
	}
	if want > 0 {
		copy(o.atomic.result[r.data:], r.payload)
	}
	return p.pieceDone(o, statusError(r.status))
}

// pieceAt is the length of the remote piece that starts at a byte of the operation; 0 if none does.
func (o *op) pieceAt(at uint64) uint64 {
	if len(o.remotes) == 0 && at == 0 {
		return o.length
	}
	for i := range o.remotes {
		n := o.remotes[i].Len
		if at < n {
			if at == 0 {
				return n
			}
			break
		}
		at -= n
	}
	return 0
}

package loop

import (
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// access moves a read, a write or an atomic operation on. The peer has no part in it: whoever posts or polls copies from
// and to the registered memory itself, a piece at a time.
func (d *domain) access(l *link, id uint64, o *op) (end bool, err error) {
	far := l.far().domain
	if o.kind == provider.AtomicDone {
		err = d.atomic(far, o)
	} else if err = o.check(far); err == nil {
		for o.done < o.len {
			if d.budget == 0 {
				d.wantPump(l) // go on at the next poll
				return false, nil
			}
			if err = d.move(far, o); err != nil {
				break
			}
		}
	}
	if err != nil {
		return true, err
	}
	if o.flags.Has(provider.RemoteData) {
		if !l.out().hasRoom() {
			return false, nil
		}
		l.put(packet{kind: written, data: o.data, hasData: true, len: o.len})
	}
	l.accesses.pop()
	d.count(o)
	l.ep.finish(id, o, nil)
	return true, nil
}

// count adds an operation to the statistics.
func (d *domain) count(o *op) {
	switch o.kind {
	case provider.ReadDone:
		d.stats.Reads++
		d.stats.BytesRead += o.len
	case provider.WriteDone:
		d.stats.Writes++
		d.stats.BytesWritten += o.len
	default:
		d.stats.Atomics++
	}
}

// need is the access that the operation asks for. PeerWrite is the right to all atomic operations.
func (o *op) need() provider.Access {
	if o.kind == provider.ReadDone {
		return provider.PeerRead
	}
	return provider.PeerWrite
}

// check looks at all remote segments before a byte is moved.
func (o *op) check(far *domain) error {
	if o.done > 0 {
		return nil
	}
	if o.remotes == nil {
		return far.keys.Check(o.key, o.offset, o.len, o.need())
	}
	for i := range o.remotes {
		r := &o.remotes[i]
		if err := far.keys.Check(r.Key, r.Offset, r.Len, o.need()); err != nil {
			return err
		}
	}
	return nil
}

// remote is the remote piece at an offset of the operation, and how long it is.
func (o *op) remote(at uint64) (key provider.Key, offset, n uint64) {
	if o.remotes == nil {
		return o.key, o.offset + at, o.len - at
	}
	for i := range o.remotes {
		r := &o.remotes[i]
		if at < r.Len {
			return r.Key, r.Offset + at, r.Len - at
		}
		at -= r.Len
	}
	return 0, 0, 0
}

// move copies the next piece, as far as the budget goes.
func (d *domain) move(far *domain, o *op) error {
	key, offset, n := o.remote(o.done)
	n = min(n, d.budget)
	b, region, err := far.keys.Use(key, offset, n, o.need())
	if err != nil {
		return err
	}
	defer region.Done()
	v := provutil.Vector{First: b}
	if o.kind == provider.ReadDone {
		n = provutil.CopyVector(o.buffer, o.done, v, 0, n)
	} else {
		n = provutil.CopyVector(v, 0, o.buffer, o.done, n)
	}
	o.done += n
	d.budget -= n
	return nil
}

// atomic runs an atomic operation.
func (d *domain) atomic(far *domain, o *op) error {
	if err := o.check(far); err != nil {
		return err
	}
	operand := o.buffer.Joined(d.operand[:])
	for at := uint64(0); at < o.len; {
		key, offset, n := o.remote(at)
		b, region, err := far.keys.Use(key, offset, n, o.need())
		if err != nil {
			return err
		}
		far.atomics.ApplyPart(o.code, o.typ, b, operand, o.compare, o.result, at)
		region.Done()
		at += n
	}
	return nil
}

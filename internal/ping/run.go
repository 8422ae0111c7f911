package ping

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/weft-fabric/weft/fabric"
)

// run is one phase at one size, on one side.
type run struct {
	*end
	job
	out, in *memory    // what is sent or read by the peer; what is received or written by it. nil: not needed
	key     fabric.Key // of the peer's memory
	post1   func(fabric.Op) error
	flags   fabric.Flags

	busy []bool // slots of out, of in for reads: an operation of this side has not ended
	got  []int  // transfers that have arrived in each slot of in
}

// newRun prepares a phase. serving is the side that does what the other one asks for.
func newRun(ctx context.Context, e *end, j job, serving bool) (*run, error) {
	runtime.GC() // what earlier phases left is not to cost time in this one
	r := &run{end: e, job: j, busy: make([]bool, j.Slots), got: make([]int, j.Slots)}
	r.post1 = map[Op]func(fabric.Op) error{
		Message: e.ep.Send, Tagged: e.ep.SendTagged, Write: e.ep.Write, Read: e.ep.Read,
	}[j.Op]
	if err := r.allocate(ctx, serving); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.out != nil {
		if err := r.fill(ctx, r.out); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	r.flags = r.chooseFlags()
	e.run = r
	return r, nil
}

// allocate gets the memory that this side needs.
func (r *run) allocate(ctx context.Context, serving bool) error {
	get := func(m **memory, a fabric.Access) (err error) {
		*m, err = r.newMemory(ctx, r.Slots, r.Size, a)
		return err
	}
	echo := r.Phase == Latency
	switch {
	case r.Op == View && !serving:
		return nil
	case r.Op == View || r.Op == Read && serving:
		return get(&r.out, fabric.PeerRead)
	case r.Op == Read:
		return get(&r.in, 0)
	}
	if echo || !serving {
		if err := get(&r.out, 0); err != nil {
			return err
		}
	}
	if !echo && !serving {
		return nil
	}
	if r.Op == Write {
		return get(&r.in, fabric.PeerWrite)
	}
	return get(&r.in, 0)
}

// injectMost is the size up to which data are copied by the post, if the provider can.
const injectMost = 4 << 10

// chooseFlags are those of what this side sends.
func (r *run) chooseFlags() fabric.Flags {
	var f fabric.Flags
	switch {
	case r.Op == Write && r.Phase == Rate:
		return fabric.DeliveryComplete // a rate of bytes that are there
	case r.Op == Write:
		f = fabric.RemoteData
	case r.Op != Message && r.Op != Tagged:
		return 0
	}
	if limit := r.info.Limits.Inject; r.Size <= injectMost && (limit == 0 || uint64(r.Size) <= limit) {
		f |= fabric.Inject | fabric.Quiet
	}
	return f
}

// close gives the memory back.
func (r *run) close() error {
	r.run = nil
	return errors.Join(r.out.close(), r.in.close())
}

// exposed is the key of the memory that the other side uses.
func (r *run) exposed() fabric.Key {
	if r.Op == Write {
		return r.in.key()
	}
	return r.out.key()
}

// take notes the completion of a data operation.
func (r *run) take(c *fabric.Completion) error {
	number := c.Context
	switch c.Kind {
	case fabric.SendDone, fabric.TSendDone, fabric.WriteDone, fabric.ReadDone:
		r.busy[c.Context%uint64(r.Slots)] = false
		return nil
	case fabric.RemoteWrite:
		number = c.Data
	case fabric.RecvDone, fabric.TRecvDone:
	default:
		return fmt.Errorf("%w: an end of %v that nobody asked for", ErrData, c.Kind)
	}
	// They are matched in order, but large ones may end in any.
	s := number % uint64(r.Slots)
	if due := s + uint64(r.got[s]*r.Slots); number != due || c.Len != uint64(r.Size) {
		return fmt.Errorf("%w: %s %d of %d bytes came where %d of %d was due", ErrData, r.Op, number, c.Len, due, r.Size)
	}
	r.got[s]++
	return nil
}

// free waits until slot s is not in use by an operation of this side.
func (r *run) free(ctx context.Context, s int) error {
	for r.busy[s] {
		if err := r.progress(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until all operations of this side have ended.
func (r *run) settle(ctx context.Context) error {
	for s := range r.busy {
		if err := r.free(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// send starts transfer i when its slot is free.
func (r *run) send(ctx context.Context, i int) error {
	s := i % r.Slots
	if err := r.free(ctx, s); err != nil {
		return err
	}
	op := fabric.Op{Local: r.out.slots[s], Peer: r.peer, Flags: r.flags, Context: uint64(i)}
	stamp(op.Local.Bytes, uint64(i))
	switch r.Op {
	case Tagged:
		op.Tag = dataTag
	case Write:
		op.Key, op.Offset = r.key, uint64(s*r.Size)
		if r.Phase == Latency {
			op.Data = uint64(i)
		}
	case Message, Read, View:
	}
	r.busy[s] = !r.flags.Has(fabric.Quiet)
	return r.post(ctx, r.post1, op)
}

// arm posts the receive of transfer i, if there is one. Writes need none.
func (r *run) arm(ctx context.Context, i int) error {
	if r.Op == Write || i >= r.total() {
		return nil
	}
	op := r.from(fabric.Op{Local: r.in.slots[i%r.Slots], Context: uint64(i)})
	if r.Op == Tagged {
		op.Tag = dataTag
		return r.post(ctx, r.ep.RecvTagged, op)
	}
	return r.post(ctx, r.ep.Recv, op)
}

// armFirst posts the first receives.
func (r *run) armFirst(ctx context.Context) error {
	for i := range r.Slots {
		if err := r.arm(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// land waits for transfer i and checks its ends. The other side says nothing meanwhile, unless it
// gives up.
func (r *run) land(ctx context.Context, i int) error {
	for r.got[i%r.Slots] <= i/r.Slots {
		if r.said >= 0 {
			_, err := r.hear(ctx)
			return err
		}
		if err := r.progress(ctx); err != nil {
			return err
		}
	}
	return checkEdges(r.Op, r.in.slots[i%r.Slots].Bytes, uint64(i))
}

// checkIn looks at every byte of the last transfers that have come into in.
func (r *run) checkIn(ctx context.Context) error {
	want, err := r.newReference(ctx)
	if err != nil {
		return err
	}
	for i := max(r.total()-r.Slots, 0); i < r.total(); i++ {
		if err := want.check(r.Op, r.in.slots[i%r.Slots].Bytes, uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

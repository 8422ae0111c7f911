package provutil

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

// allowed are the flags of each kind of operation.
var allowed = [...]provider.Flags{
	provider.SendDone:   sending,
	provider.TSendDone:  sending,
	provider.RecvDone:   provider.Directed | provider.Multi | provider.Quiet | provider.More,
	provider.TRecvDone:  provider.Directed | provider.Peek | provider.Claim | provider.Discard | provider.Quiet | provider.More,
	provider.ReadDone:   provider.Quiet | provider.More | provider.Fence,
	provider.WriteDone:  sending,
	provider.AtomicDone: provider.Inject | provider.DeliveryComplete | provider.Quiet | provider.More | provider.Fence,
}

const sending = provider.RemoteData | provider.Inject | provider.DeliveryComplete | provider.Quiet | provider.More | provider.Fence

// Check is what every provider asks of a post before it takes it: lengths within the limits, flags that the operation
// knows, a peer where one is needed. It does not allocate unless it refuses. Locked or unlocked.
func Check(l *provider.Limits, kind provider.Kind, op *provider.Op) error {
	if int(kind) >= len(allowed) || kind == 0 {
		return fmt.Errorf("operation %v: %w", kind, provider.ErrNotSupported)
	}
	if odd := op.Flags &^ allowed[kind]; odd != 0 {
		return fmt.Errorf("flags %v are not for %v: %w", odd, kind, provider.ErrInvalid)
	}
	switch kind {
	case provider.RecvDone, provider.TRecvDone:
		return checkRecv(kind, op)
	}
	n := VectorOf(op).Len()
	most := l.Message
	if kind != provider.SendDone && kind != provider.TSendDone {
		most = l.RMA
	}
	switch {
	case op.Peer == 0:
		return fmt.Errorf("%v to no peer: %w", kind, provider.ErrInvalid)
	case most > 0 && n > most:
		return fmt.Errorf("%v of %d bytes, the limit is %d: %w", kind, n, most, provider.ErrTooLong)
	case op.Flags.Has(provider.Inject) && n > l.Inject:
		return fmt.Errorf("%v of %d bytes with inject, the limit is %d: %w", kind, n, l.Inject, provider.ErrTooLong)
	case l.Segments > 0 && 1+len(op.Locals) > l.Segments:
		return fmt.Errorf("%v with %d local segments, the limit is %d: %w", kind, 1+len(op.Locals), l.Segments, provider.ErrTooLong)
	case l.Remotes > 0 && len(op.Remotes) > l.Remotes:
		return fmt.Errorf("%v with %d remote segments, the limit is %d: %w", kind, len(op.Remotes), l.Remotes, provider.ErrTooLong)
	case op.Remotes != nil && kind != provider.AtomicDone && !remotesAdd(op.Remotes, n):
		return fmt.Errorf("%v of %d bytes: the remote segments add up to something else: %w", kind, n, provider.ErrInvalid)
	case l.TagBits > 0 && l.TagBits < 64 && op.Tag>>l.TagBits != 0:
		return fmt.Errorf("tag %#x has more than %d bits: %w", op.Tag, l.TagBits, provider.ErrInvalid)
	}
	return nil
}

func checkRecv(kind provider.Kind, op *provider.Op) error {
	f := op.Flags
	switch {
	case f.Has(provider.Directed) != (op.Peer != 0):
		return fmt.Errorf("%v: a peer goes with the flag directed, and only with it: %w", kind, provider.ErrInvalid)
	case f.Has(provider.Discard) && f&(provider.Peek|provider.Claim) == 0:
		return fmt.Errorf("%v: discard without peek or claim: %w", kind, provider.ErrInvalid)
	case f.Has(provider.Multi) && len(op.Locals) > 0:
		return fmt.Errorf("%v: a multi receive has one segment: %w", kind, provider.ErrInvalid)
	}
	return nil
}

// remotesAdd says whether the remote segments are n bytes together.
func remotesAdd(remotes []provider.RemoteSegment, n uint64) bool {
	for i := range remotes {
		if remotes[i].Len > n {
			return false
		}
		n -= remotes[i].Len
	}
	return n == 0
}

// CheckAtomic is Check for an atomic operation.
func CheckAtomic(l *provider.Limits, op *provider.Atomic) error {
	if !AtomicValid(op.Code, op.Type) {
		return fmt.Errorf("atomic operation %d on type %d: %w", op.Code, op.Type, provider.ErrNotSupported)
	}
	if err := Check(l, provider.AtomicDone, &op.Op); err != nil {
		return err
	}
	n := AtomicLen(op)
	switch {
	case n == 0 || n%op.Type.Size() != 0:
		return fmt.Errorf("atomic operation on %d bytes, elements have %d: %w", n, op.Type.Size(), provider.ErrInvalid)
	case l.AtomicLen > 0 && uint64(n) > l.AtomicLen:
		return fmt.Errorf("atomic operation on %d bytes, the limit is %d: %w", n, l.AtomicLen, provider.ErrTooLong)
	case op.Code == provider.AtomicRead && op.Len() > 0:
		return fmt.Errorf("atomic read with operands: %w", provider.ErrInvalid)
	case op.Remotes != nil && !remotesAdd(op.Remotes, uint64(n)):
		return fmt.Errorf("atomic operation on %d bytes: the remote segments add up to something else: %w", n, provider.ErrInvalid)
	case op.Flags.Has(provider.Inject) && (op.Result != nil || op.Compare != nil):
		return fmt.Errorf("atomic operation with inject and buffers besides its operands: %w", provider.ErrInvalid)
	case !needsCompare(op.Code) && op.Compare != nil:
		return fmt.Errorf("atomic operation %d compares nothing: %w", op.Code, provider.ErrInvalid)
	case needsCompare(op.Code) && len(op.Compare) != n:
		return fmt.Errorf("atomic operation on %d bytes compares with %d: %w", n, len(op.Compare), provider.ErrInvalid)
	case op.Result != nil && len(op.Result) != n:
		return fmt.Errorf("atomic operation on %d bytes has a result of %d: %w", n, len(op.Result), provider.ErrInvalid)
	}
	for i := range op.Remotes {
		if l := op.Remotes[i].Len; l == 0 || l%uint64(op.Type.Size()) != 0 {
			return fmt.Errorf("remote segment %d of an atomic operation: %d bytes are no elements of %d: %w", i, l, op.Type.Size(), provider.ErrInvalid)
		}
	}
	return nil
}

// AtomicLen is the number of bytes that an atomic operation changes at its target.
func AtomicLen(op *provider.Atomic) int {
	if op.Code == provider.AtomicRead {
		return len(op.Result)
	}
	return op.Len()
}

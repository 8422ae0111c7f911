package provider

import (
	"fmt"
	"math/bits"
)

// Check refuses a post of kind k that makes no sense, or that is above a limit: ErrInvalid, ErrTooLong. Whoever takes posts asks it, package
// fabric for all providers and a provider for who calls it directly, so that both mean the same. It allocates only for an error. Which
// capabilities the operation needs, and whether its memory is open, is not asked. Of an atomic operation ask CheckAtomic.
func Check(l *Limits, k Kind, op *Op) error {
	if k == 0 || k > AtomicDone {
		return invalid("no operation has the number %d", uint8(k))
	}
	if op.Flags != 0 {
		if err := checkFlags(k, op.Flags); err != nil {
			return err
		}
	}
	if err := checkFields(k, op); err != nil {
		return err
	}
	n, err := checkLocal(l, op)
	if err != nil {
		return err
	}
	if k.receives() {
		if op.Flags != 0 {
			if err := checkBuffer(op, n); err != nil {
				return err
			}
		}
	} else if err := checkLength(l, k, op.Flags, n); err != nil {
		return err
	}
	if (k == ReadDone || k == WriteDone) && (op.Offset != 0 || op.Remotes != nil) {
		if err := checkTarget(l, op, n); err != nil {
			return err
		}
	}
	if op.Tag|op.Ignore|op.Data == 0 {
		return nil
	}
	return checkBits(l, op)
}

func (k Kind) tagged() bool   { return k == TSendDone || k == TRecvDone }
func (k Kind) receives() bool { return k == RecvDone || k == TRecvDone }
func (k Kind) remote() bool   { return k >= ReadDone }

// checkFlags checks which flags stand where, and together.
func checkFlags(k Kind, f Flags) error {
	if odd := f &^ k.Flags(); odd != 0 {
		return invalid("%v does not go with it", odd)
	}
	switch {
	case f.Has(Multi | Quiet):
		return invalid("%v: a buffer for many messages needs its completions", Multi|Quiet)
	case f.Has(Peek | Quiet):
		return invalid("%v: a peek is asked for its completion", Peek|Quiet)
	case f.Has(Peek | Claim | Discard):
		return invalid("%v: claim the message, or drop it", Peek|Claim|Discard)
	case f.Has(Discard) && f&(Peek|Claim) == 0:
		return invalid("%v goes with %v or %v", Discard, Peek, Claim)
	}
	return nil
}

// checkFields checks that what counts is there, and that what does not is zero: a field in the wrong call is a
// mistake that should show.
func checkFields(k Kind, op *Op) error {
	if (op.Peer == 0) != (k.receives() && op.Flags&Directed == 0) {
		return badPeer(k, op)
	}
	if uint64(op.Key)|op.Offset|op.Tag|op.Ignore|op.Data == 0 && op.Remotes == nil {
		return nil
	}
	switch {
	case !k.remote() && (op.Key != 0 || op.Offset != 0 || op.Remotes != nil):
		return invalid("it has no remote memory")
	case !k.tagged() && op.Tag != 0:
		return invalid("it has no tag")
	case k != TRecvDone && op.Ignore != 0:
		return invalid("it has no mask")
	case op.Data != 0 && !op.Flags.Has(RemoteData):
		return invalid("data without %v", RemoteData)
	case op.Remotes != nil && (op.Key != 0 || op.Offset != 0):
		return invalid("a key beside a list of remote segments")
	}
	return nil
}

func badPeer(k Kind, op *Op) error {
	switch {
	case !k.receives():
		return invalid("no peer: 0 is none, Insert makes one of an address")
	case op.Peer == 0:
		return invalid("%v without a peer", Directed)
	}
	return invalid("it names peer %v, which needs %v", op.Peer, Directed)
}

// checkLocal checks the number of local segments, and counts their bytes. An empty Local before a list is none.
func checkLocal(l *Limits, op *Op) (uint64, error) {
	n := uint64(len(op.Local.Bytes))
	if op.Locals == nil {
		return n, nil
	}
	segments := len(op.Locals)
	if n > 0 {
		segments++
	}
	if l.Segments > 0 && segments > l.Segments {
		return 0, tooLong("%d local segments, at most %d", segments, l.Segments)
	}
	for i := range op.Locals {
		n += uint64(len(op.Locals[i].Bytes)) // no sum of lengths of slices that exist wraps: a list of 2^31 of them has 96 GiB
	}
	return n, nil
}

// checkBuffer checks the buffer of a receive that is more than a place for a message.
func checkBuffer(op *Op, n uint64) error {
	switch f := op.Flags; {
	case f.Has(Multi) && len(op.Locals) > 0:
		return invalid("%v takes one buffer, not a list", Multi)
	case f.Has(Multi) && n == 0:
		return invalid("%v without a buffer", Multi)
	case f&(Peek|Discard) != 0 && (n > 0 || len(op.Locals) > 0):
		return invalid("%v has no buffer", f&(Peek|Claim|Discard))
	}
	return nil
}

// checkLength checks the bytes of what goes out or comes in by our own doing.
func checkLength(l *Limits, k Kind, f Flags, n uint64) error {
	most := l.Message
	switch {
	case k == AtomicDone:
		most = l.AtomicLen
	case k.remote():
		most = l.RMA
	}
	if most > 0 && n > most {
		return tooLong("%d bytes, at most %d", n, most)
	}
	if f&Inject != 0 && l.Inject > 0 && n > l.Inject {
		return tooLong("%d bytes with %v, at most %d", n, Inject, l.Inject)
	}
	return nil
}

// checkBits checks tag and data.
func checkBits(l *Limits, op *Op) error {
	if n := bits.Len64(op.Tag | op.Ignore); l.TagBits > 0 && n > l.TagBits {
		return invalid("tag and mask have %d bits, at most %d", n, l.TagBits)
	}
	if n := bits.Len64(op.Data); l.DataBytes > 0 && n > 8*l.DataBytes {
		return invalid("data has %d bits, at most %d", n, 8*l.DataBytes)
	}
	return nil
}

// checkTarget checks the remote memory of n bytes.
func checkTarget(l *Limits, op *Op, n uint64) error {
	if op.Remotes == nil {
		if _, carry := bits.Add64(op.Offset, n, 0); carry != 0 {
			return invalid("%d bytes from offset %d on: beyond 64 bits", n, op.Offset)
		}
		return nil
	}
	if l.Remotes > 0 && len(op.Remotes) > l.Remotes {
		return tooLong("%d remote segments, at most %d", len(op.Remotes), l.Remotes)
	}
	var sum, over uint64
	for i := range op.Remotes {
		r := &op.Remotes[i]
		if _, carry := bits.Add64(r.Offset, r.Len, 0); carry != 0 {
			return invalid("remote segment %d: %d bytes from offset %d on: beyond 64 bits", i, r.Len, r.Offset)
		}
		var carry uint64
		sum, carry = bits.Add64(sum, r.Len, 0)
		over |= carry
	}
	if sum != n || over != 0 {
		return invalid("the remote segments do not have the %d bytes of the local ones", n)
	}
	return nil
}

// invalid says what makes no sense.
func invalid(format string, args ...any) error { return because(ErrInvalid, format, args) }

// tooLong says which limit was passed.
func tooLong(format string, args ...any) error { return because(ErrTooLong, format, args) }

func because(err error, format string, args []any) error {
	return fmt.Errorf(format+": %w", append(args[:len(args):len(args)], err)...)
}

package fabric

import (
	"fmt"
	"math"
	"math/bits"
)

// call is one of the posts of an endpoint.
type call uint8

const (
	callSend call = iota
	callRecv
	callSendTagged
	callRecvTagged
	callRead
	callWrite
	callAtomic
	numCalls
)

// calls says of each call what it is called, what it needs of the provider, and which flags go with it.
var calls = [numCalls]struct {
	name  string
	caps  Caps
	flags Flags
}{
	callSend:       {SendDone.String(), Msg, SendDone.Flags()},
	callRecv:       {RecvDone.String(), Msg, RecvDone.Flags()},
	callSendTagged: {TSendDone.String(), Tagged, TSendDone.Flags()},
	callRecvTagged: {TRecvDone.String(), Tagged, TRecvDone.Flags()},
	callRead:       {ReadDone.String(), RMA, ReadDone.Flags()},
	callWrite:      {WriteDone.String(), RMA, WriteDone.Flags()},
	callAtomic:     {AtomicDone.String(), Atomics, AtomicDone.Flags()},
}

// flagCaps lists the flags that a provider must offer.
var flagCaps = [...]struct {
	flag Flags
	caps Caps
}{{RemoteData, RemoteCQData}, {Multi, MultiRecv}, {Directed, DirectedRecv}}

func (c call) tagged() bool   { return c == callSendTagged || c == callRecvTagged }
func (c call) receives() bool { return c == callRecv || c == callRecvTagged }
func (c call) remote() bool   { return c >= callRead }

// checker holds what posts are checked against. It is immutable, and its methods allocate only for an error.
type checker struct {
	caps   Caps
	limits Limits // 0 replaced by the greatest value
	domain *Domain
}

func newChecker(d *Domain, info *Info) checker {
	l := info.Limits
	l.Message, l.RMA, l.Inject, l.AtomicLen = bound(l.Message), bound(l.RMA), bound(l.Inject), bound(l.AtomicLen)
	l.Segments, l.Remotes = boundInt(l.Segments, math.MaxInt), boundInt(l.Remotes, math.MaxInt)
	l.TagBits, l.DataBytes = boundInt(l.TagBits, 64), boundInt(l.DataBytes, 8)
	return checker{caps: info.Caps, limits: l, domain: d}
}

func bound(n uint64) uint64 {
	if n == 0 {
		return math.MaxUint64
	}
	return n
}

func boundInt(n, most int) int {
	if n <= 0 || n > most {
		return most
	}
	return n
}

// post checks an operation, but for what is special to atomics.
func (k *checker) post(c call, op *Op) error {
	if !k.caps.Has(calls[c].caps) {
		return fmt.Errorf("%w: the provider does not offer %v", ErrNotSupported, calls[c].caps)
	}
	if op.Flags != 0 {
		if err := k.flags(c, op.Flags); err != nil {
			return err
		}
	}
	if err := fields(c, op); err != nil {
		return err
	}
	n, err := k.local(op)
	if err != nil {
		return err
	}
	if c.receives() {
		if err := buffers(op, n); err != nil {
			return err
		}
	} else if err := k.length(c, op.Flags, n); err != nil {
		return err
	}
	if c.remote() && c != callAtomic {
		return k.target(op, n)
	}
	if op.Tag|op.Ignore|op.Data == 0 {
		return nil
	}
	return k.bits(op)
}

// flags checks which flags stand where, and together.
func (k *checker) flags(c call, f Flags) error {
	if odd := f &^ calls[c].flags; odd != 0 {
		return invalid("%v does not go with a %s", odd, calls[c].name)
	}
	for _, need := range flagCaps {
		if f.Has(need.flag) && !k.caps.Has(need.caps) {
			return fmt.Errorf("%w: %v needs %v, which the provider does not offer", ErrNotSupported, need.flag, need.caps)
		}
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

// fields checks that what counts is there, and that what does not is zero: a field in the wrong call is a
// mistake that should show.
func fields(c call, op *Op) error {
	if (op.Peer == 0) != (c.receives() && op.Flags&Directed == 0) {
		return badPeer(c, op)
	}
	if uint64(op.Key)|op.Offset|op.Tag|op.Ignore|op.Data == 0 && op.Remotes == nil {
		return nil
	}
	switch {
	case !c.remote() && (op.Key != 0 || op.Offset != 0 || op.Remotes != nil):
		return invalid("a %s has no remote memory", calls[c].name)
	case !c.tagged() && op.Tag != 0:
		return invalid("a %s has no tag", calls[c].name)
	case c != callRecvTagged && op.Ignore != 0:
		return invalid("a %s has no mask", calls[c].name)
	case op.Data != 0 && !op.Flags.Has(RemoteData):
		return invalid("data without %v", RemoteData)
	case op.Remotes != nil && (op.Key != 0 || op.Offset != 0):
		return invalid("a key beside a list of remote segments")
	}
	return nil
}

func badPeer(c call, op *Op) error {
	switch {
	case !c.receives():
		return invalid("no peer: 0 is none, Insert makes one of an address")
	case op.Peer == 0:
		return invalid("%v without a peer", Directed)
	}
	return invalid("a receive names peer %d, which needs %v", op.Peer, Directed)
}

// local checks the local buffer and counts its bytes.
func (k *checker) local(op *Op) (uint64, error) {
	if segments := 1 + len(op.Locals); segments > k.limits.Segments {
		return 0, fmt.Errorf("%w: %d local segments, at most %d", ErrTooLong, segments, k.limits.Segments)
	}
	if op.Local.Memory != nil {
		if err := k.domain.owns(&op.Local); err != nil {
			return 0, err
		}
	}
	n := uint64(len(op.Local.Bytes))
	for i := range op.Locals {
		s := &op.Locals[i]
		if s.Memory != nil {
			if err := k.domain.owns(s); err != nil {
				return 0, err
			}
		}
		n += uint64(len(s.Bytes)) // no sum of lengths of slices that exist wraps: a list of 2^31 of them has 96 GiB
	}
	return n, nil
}

// buffers checks the buffer of a receive that is more than a place for a message.
func buffers(op *Op, n uint64) error {
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

// length checks the bytes of what goes out or comes in by our own doing.
func (k *checker) length(c call, f Flags, n uint64) error {
	most := k.limits.Message
	switch {
	case c == callAtomic:
		most = k.limits.AtomicLen
	case c.remote():
		most = k.limits.RMA
	}
	if n > most {
		return fmt.Errorf("%w: a %s of %d bytes, at most %d", ErrTooLong, calls[c].name, n, most)
	}
	if f.Has(Inject) && n > k.limits.Inject {
		return fmt.Errorf("%w: %v of %d bytes, at most %d", ErrTooLong, Inject, n, k.limits.Inject)
	}
	return nil
}

// bits checks tag and data.
func (k *checker) bits(op *Op) error {
	if n := bits.Len64(op.Tag | op.Ignore); n > k.limits.TagBits {
		return invalid("tag and mask have %d bits, at most %d", n, k.limits.TagBits)
	}
	return k.data(op)
}

func (k *checker) data(op *Op) error {
	if n := bits.Len64(op.Data); n > 8*k.limits.DataBytes {
		return invalid("data has %d bits, at most %d", n, 8*k.limits.DataBytes)
	}
	return nil
}

// target checks the remote memory of n bytes.
func (k *checker) target(op *Op, n uint64) error {
	if op.Remotes == nil {
		if _, carry := bits.Add64(op.Offset, n, 0); carry != 0 {
			return invalid("%d bytes from offset %d on: beyond 64 bits", n, op.Offset)
		}
		return k.data(op)
	}
	if len(op.Remotes) > k.limits.Remotes {
		return fmt.Errorf("%w: %d remote segments, at most %d", ErrTooLong, len(op.Remotes), k.limits.Remotes)
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
	return k.data(op)
}

package fabric

import (
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// call is one of the posts of an endpoint, in the order of the kinds of their completions.
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

// needy are the flags in it.
const needy = RemoteData | Multi | Directed

// checker holds what posts are checked against. It is immutable, and its methods allocate only for an error.
type checker struct {
	caps   Caps
	limits Limits
	domain *Domain
}

func newChecker(d *Domain, info *Info) checker {
	return checker{caps: info.Caps, limits: info.Limits, domain: d}
}

// post checks an operation, but for what is special to atomics.
func (k *checker) post(c call, op *Op) error {
	if err := k.offered(c, op); err != nil {
		return err
	}
	return provider.Check(&k.limits, SendDone+Kind(c), op)
}

// atomic checks an atomic operation.
func (k *checker) atomic(a *Atomic) error {
	if err := k.offered(callAtomic, &a.Op); err != nil {
		return err
	}
	return provider.CheckAtomic(&k.limits, a)
}

// offered checks that the provider can do it, and that the memory is of the domain.
func (k *checker) offered(c call, op *Op) error {
	if !k.caps.Has(calls[c].caps) {
		return fmtNotSupported("the provider does not offer " + calls[c].caps.String())
	}
	if op.Flags&calls[c].flags&needy != 0 {
		for _, need := range flagCaps {
			if op.Flags.Has(need.flag) && !k.caps.Has(need.caps) {
				return fmtNotSupported(need.flag.String() + " needs " + need.caps.String() + ", which the provider does not offer")
			}
		}
	}
	if err := k.segment(&op.Local); err != nil {
		return err
	}
	for i := range op.Locals {
		if err := k.segment(&op.Locals[i]); err != nil {
			return err
		}
	}
	return nil
}

// segment checks that registered memory is of the domain, and that bytes are a part of what they are said to be.
func (k *checker) segment(s *Segment) error {
	if s.Memory != nil {
		if s.Kind != nil {
			return invalid("a segment of registered memory has a Kind")
		}
		return k.domain.owns(s)
	}
	if s.Kind != nil && !memmon.RangeOf(s.Kind.Bytes()).Contains(memmon.RangeOf(s.Bytes)) && len(s.Bytes) > 0 {
		return invalid("%d bytes that are not part of the %d of their Kind", len(s.Bytes), len(s.Kind.Bytes()))
	}
	return nil
}

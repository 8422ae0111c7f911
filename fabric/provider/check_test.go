package provider_test

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestCheck(t *testing.T) {
	l := provider.Limits{Message: 100, RMA: 50, Inject: 10, Segments: 2, Remotes: 2, AtomicLen: 32, TagBits: 8}
	buf := func(n int) provider.Segment { return provider.Segment{Bytes: make([]byte, n)} }
	for name, x := range map[string]struct {
		kind provider.Kind
		op   provider.Op
		want error
	}{
		"send":              {provider.SendDone, provider.Op{Local: buf(100), Peer: 1}, nil},
		"too long":          {provider.SendDone, provider.Op{Local: buf(101), Peer: 1}, provider.ErrTooLong},
		"vector too long":   {provider.SendDone, provider.Op{Local: buf(99), Locals: []provider.Segment{buf(2)}, Peer: 1}, provider.ErrTooLong},
		"segments":          {provider.SendDone, provider.Op{Local: buf(1), Locals: []provider.Segment{buf(1), buf(1)}, Peer: 1}, provider.ErrTooLong},
		"empty first":       {provider.SendDone, provider.Op{Locals: []provider.Segment{buf(1), buf(1)}, Peer: 1}, nil},
		"no peer":           {provider.TSendDone, provider.Op{}, provider.ErrInvalid},
		"inject":            {provider.SendDone, provider.Op{Local: buf(10), Peer: 1, Flags: provider.Inject | provider.DeliveryComplete}, nil},
		"inject too long":   {provider.WriteDone, provider.Op{Local: buf(11), Peer: 1, Flags: provider.Inject}, provider.ErrTooLong},
		"inject a read":     {provider.ReadDone, provider.Op{Peer: 1, Flags: provider.Inject}, provider.ErrInvalid},
		"write too long":    {provider.WriteDone, provider.Op{Local: buf(51), Peer: 1}, provider.ErrTooLong},
		"remotes":           {provider.ReadDone, provider.Op{Local: buf(9), Peer: 1, Remotes: []provider.RemoteSegment{{Len: 4}, {Len: 5}}}, nil},
		"remotes short":     {provider.ReadDone, provider.Op{Local: buf(9), Peer: 1, Remotes: []provider.RemoteSegment{{Len: 4}}}, provider.ErrInvalid},
		"remotes overflow":  {provider.ReadDone, provider.Op{Local: buf(9), Peer: 1, Remotes: []provider.RemoteSegment{{Len: ^uint64(0)}, {Len: 10}}}, provider.ErrInvalid},
		"many remotes":      {provider.ReadDone, provider.Op{Peer: 1, Remotes: make([]provider.RemoteSegment, 3)}, provider.ErrTooLong},
		"tag bits":          {provider.TSendDone, provider.Op{Peer: 1, Tag: 256}, provider.ErrInvalid},
		"recv":              {provider.RecvDone, provider.Op{Local: buf(9999)}, nil},
		"directed":          {provider.RecvDone, provider.Op{Peer: 1, Flags: provider.Directed}, nil},
		"directed nowhere":  {provider.RecvDone, provider.Op{Flags: provider.Directed}, provider.ErrInvalid},
		"undirected":        {provider.RecvDone, provider.Op{Peer: 1}, provider.ErrInvalid},
		"multi":             {provider.RecvDone, provider.Op{Local: buf(9), Flags: provider.Multi}, nil},
		"multi vector":      {provider.RecvDone, provider.Op{Local: buf(1), Locals: []provider.Segment{buf(1)}, Flags: provider.Multi}, provider.ErrInvalid},
		"multi tagged":      {provider.TRecvDone, provider.Op{Flags: provider.Multi}, provider.ErrInvalid},
		"peek":              {provider.TRecvDone, provider.Op{Flags: provider.Peek | provider.Claim}, nil},
		"peek untagged":     {provider.RecvDone, provider.Op{Flags: provider.Peek}, provider.ErrInvalid},
		"discard":           {provider.TRecvDone, provider.Op{Flags: provider.Discard}, provider.ErrInvalid},
		"not an operation":  {provider.RemoteWrite, provider.Op{}, provider.ErrInvalid},
		"no operation":      {0, provider.Op{}, provider.ErrInvalid},
		"data with a read":  {provider.ReadDone, provider.Op{Peer: 1, Flags: provider.RemoteData}, provider.ErrInvalid},
		"fence with a recv": {provider.RecvDone, provider.Op{Flags: provider.Fence}, provider.ErrInvalid},
	} {
		if err := provider.Check(&l, x.kind, &x.op); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	op := provider.Op{Local: buf(5), Peer: 1}
	if n := testing.AllocsPerRun(100, func() { _ = provider.Check(&l, provider.SendDone, &op) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckAtomic(t *testing.T) {
	l := provider.Limits{AtomicLen: 32, Inject: 16}
	b := func(n int) []byte { return make([]byte, n) }
	at := func(n int) provider.Op { return provider.Op{Local: provider.Segment{Bytes: b(n)}, Peer: 1} }
	inject := func(n int) provider.Op {
		o := at(n)
		o.Flags = provider.Inject
		return o
	}
	pieces := func(first, second int, remotes ...uint64) provider.Op { // the third local piece makes 24 bytes, if there is a second
		o := at(first)
		if second > 0 {
			o.Locals = []provider.Segment{{Bytes: b(second)}, {Bytes: b(max(24, first+16) - first - second)}}
		}
		for _, n := range remotes {
			o.Remotes = append(o.Remotes, provider.RemoteSegment{Key: 1, Len: n})
		}
		return o
	}
	for name, x := range map[string]struct {
		op   provider.Atomic
		want error
	}{
		"sum":          {provider.Atomic{Op: at(32), Code: provider.AtomicSum, Type: provider.Int64}, nil},
		"fetch":        {provider.Atomic{Op: at(8), Code: provider.AtomicSum, Type: provider.Int64, Result: b(8)}, nil},
		"read":         {provider.Atomic{Op: at(0), Code: provider.AtomicRead, Type: provider.Int64, Result: b(8)}, nil},
		"swap":         {provider.Atomic{Op: at(8), Code: provider.AtomicSwapEq, Type: provider.Int64, Compare: b(8)}, nil},
		"read nothing": {provider.Atomic{Op: at(0), Code: provider.AtomicRead, Type: provider.Int64}, provider.ErrInvalid},
		"read with x":  {provider.Atomic{Op: at(8), Code: provider.AtomicRead, Type: provider.Int64, Result: b(8)}, provider.ErrInvalid},
		"no compare":   {provider.Atomic{Op: at(8), Code: provider.AtomicMaskSwap, Type: provider.Int64}, provider.ErrInvalid},
		"result":       {provider.Atomic{Op: at(8), Code: provider.AtomicSum, Type: provider.Int64, Result: b(4)}, provider.ErrInvalid},
		"odd":          {provider.Atomic{Op: at(9), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrInvalid},
		"too long":     {provider.Atomic{Op: at(40), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrTooLong},
		"bits":         {provider.Atomic{Op: at(8), Code: provider.AtomicBitOr, Type: provider.Float64}, provider.ErrInvalid},
		"order":        {provider.Atomic{Op: at(8), Code: provider.AtomicMin, Type: provider.Complex64}, provider.ErrInvalid},
		"no code":      {provider.Atomic{Op: at(8), Type: provider.Int64}, provider.ErrInvalid},
		"no type":      {provider.Atomic{Op: at(8), Code: provider.AtomicSum}, provider.ErrInvalid},
		"no peer":      {provider.Atomic{Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrInvalid},
		"pieces":       {provider.Atomic{Op: pieces(8, 3, 16, 8), Code: provider.AtomicSum, Type: provider.Int64, Result: b(24)}, nil},
		"read pieces":  {provider.Atomic{Op: pieces(0, 0, 16, 8), Code: provider.AtomicRead, Type: provider.Int64, Result: b(24)}, nil},
		"too short":    {provider.Atomic{Op: pieces(8, 3, 16), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrInvalid},
		"read of less": {provider.Atomic{Op: pieces(0, 0, 16), Code: provider.AtomicRead, Type: provider.Int64, Result: b(24)}, provider.ErrInvalid},
		"half":         {provider.Atomic{Op: pieces(8, 3, 12, 12), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrInvalid},
		"none":         {provider.Atomic{Op: pieces(8, 3, 16, 0, 8), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrInvalid},
		"long pieces":  {provider.Atomic{Op: pieces(24, 3, 16, 24), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrTooLong},
		"read with y":  {provider.Atomic{Op: pieces(0, 3, 24), Code: provider.AtomicRead, Type: provider.Int64, Result: b(24)}, provider.ErrInvalid},
		"compares":     {provider.Atomic{Op: at(8), Code: provider.AtomicSum, Type: provider.Int64, Compare: b(8)}, provider.ErrInvalid},
		"inject":       {provider.Atomic{Op: inject(8), Code: provider.AtomicSum, Type: provider.Int64}, nil},
		"inject fetch": {provider.Atomic{Op: inject(8), Code: provider.AtomicSum, Type: provider.Int64, Result: b(8)}, provider.ErrInvalid},
		"inject a lot": {provider.Atomic{Op: inject(24), Code: provider.AtomicSum, Type: provider.Int64}, provider.ErrTooLong},
		"inject swap":  {provider.Atomic{Op: inject(8), Code: provider.AtomicSwapEq, Type: provider.Int64, Compare: b(8)}, provider.ErrInvalid},
	} {
		if err := provider.CheckAtomic(&l, &x.op); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	l := provider.Limits{Inject: 4096, Segments: 16, Remotes: 16, TagBits: 64}
	for _, c := range []struct {
		kind provider.Kind
		peer provider.Peer
	}{{provider.SendDone, 1}, {provider.RecvDone, 0}, {provider.ReadDone, 1}} {
		op := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: c.peer}
		b.Run(c.kind.String(), func(b *testing.B) {
			for b.Loop() {
				if err := provider.Check(&l, c.kind, &op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

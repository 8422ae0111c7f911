package fabric

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/fakeprov"
)

// everything is a checker of a provider that offers all.
func everything() *checker {
	k := newChecker(&Domain{}, &Info{
		Caps:   Msg | Tagged | RMA | Atomics | RemoteCQData | MultiRecv | DirectedRecv | Source | Arena | Views,
		Limits: Limits{Message: 1000, RMA: 2000, Inject: 64, Segments: 3, Remotes: 2, AtomicLen: 128, TagBits: 48, DataBytes: 4},
	})
	return &k
}

// do runs the check of a call. Fields that the call or a flag needs are filled in.
func (k *checker) do(c call, op Op) error {
	if (c != callRecv && c != callRecvTagged || op.Flags.Has(Directed)) && op.Peer == 0 {
		op.Peer = 1
	}
	if c == callAtomic {
		if op.Local.Bytes == nil && op.Locals == nil {
			op.Local = Bytes(make([]byte, 8))
		}
		return k.atomic(&Atomic{Op: op, Code: AtomicSum, Type: Int64})
	}
	return k.post(c, &op)
}

// The table of flags: one row a flag, one column a call. x goes, . does not.
const flagTable = `
                    send recv tsend trecv read write atomic
remote-data         x    .    x     .     .    x     .
inject              x    .    x     .     .    x     x
delivery-complete   x    .    x     .     .    x     x
quiet               x    x    x     x     x    x     x
more                x    x    x     x     x    x     x
directed            .    x    .     x     .    .     .
multi               .    x    .     .     .    .     .
peek                .    .    .     x     .    .     .
claim               .    .    .     x     .    .     .
discard             .    .    .     -     .    .     .
fence               x    .    x     .     x    x     x
`

func TestFlagTable(t *testing.T) {
	k := everything()
	rows := strings.Split(strings.TrimSpace(flagTable), "\n")
	if columns := strings.Fields(rows[0]); len(columns) != int(numCalls) || len(rows)-1 != 11 {
		t.Fatalf("the table has %d calls, %d flags", len(columns), len(rows)-1)
	}
	for i, row := range rows[1:] {
		flag := Flags(1) << i
		cells := strings.Fields(row)
		if cells[0] != flag.String() {
			t.Fatalf("row %d is %s, want %s", i, cells[0], flag)
		}
		for c := range numCalls {
			op := Op{Flags: flag, Local: Bytes(make([]byte, 8))}
			if flag == Peek {
				op.Local = Segment{}
			}
			err := k.do(c, op)
			switch want := cells[1+c]; {
			case want == "x" && err != nil:
				t.Errorf("%v with %s: %v", flag, calls[c].name, err)
			case want != "x" && !errors.Is(err, ErrInvalid):
				t.Errorf("%v with %s: %v, want ErrInvalid", flag, calls[c].name, err)
			}
			if (want(calls[c].flags, flag)) != (cells[1+c] != ".") {
				t.Errorf("the table of calls and this one differ in %v of %s", flag, calls[c].name)
			}
		}
	}
}

func want(have, f Flags) bool { return have.Has(f) }

func TestFlagsTogether(t *testing.T) {
	k := everything()
	full := Bytes(make([]byte, 8))
	for _, c := range []struct {
		call  call
		flags Flags
		local Segment
		good  bool
	}{
		{callSend, Inject | DeliveryComplete, full, true},
		{callSend, Inject | Quiet | RemoteData | More | Fence, full, true},
		{callWrite, Inject | DeliveryComplete | RemoteData | Quiet, full, true},
		{callRecv, Directed | Multi, full, true},
		{callRecv, Multi | Quiet, full, false},
		{callRecv, Multi, Segment{}, false},
		{callRecvTagged, Peek, Segment{}, true},
		{callRecvTagged, Peek, full, false},
		{callRecvTagged, Peek | Claim, Segment{}, true},
		{callRecvTagged, Peek | Claim, full, false},
		{callRecvTagged, Peek | Discard, Segment{}, true},
		{callRecvTagged, Peek | Directed, Segment{}, true},
		{callRecvTagged, Peek | Quiet, Segment{}, false},
		{callRecvTagged, Peek | Claim | Discard, Segment{}, false},
		{callRecvTagged, Claim, full, true},
		{callRecvTagged, Claim, Segment{}, true},
		{callRecvTagged, Claim | Discard, Segment{}, true},
		{callRecvTagged, Claim | Discard, full, false},
		{callRecvTagged, Discard, Segment{}, false},
		{callSend, 1 << 30, full, false},
	} {
		err := k.do(c.call, Op{Flags: c.flags, Local: c.local})
		if c.good && err != nil || !c.good && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s with %v and %d bytes: %v, want good: %v", calls[c.call].name, c.flags, len(c.local.Bytes), err, c.good)
		}
	}
}

func TestCapsAreAskedFor(t *testing.T) {
	for c := range numCalls {
		k := everything()
		k.caps &^= calls[c].caps
		if err := k.do(c, Op{}); !errors.Is(err, ErrNotSupported) {
			t.Errorf("%s without its capability: %v", calls[c].name, err)
		}
	}
	k := everything()
	k.caps = Msg
	for _, c := range []struct {
		call call
		flag Flags
	}{{callSend, RemoteData}, {callRecv, Multi}, {callRecv, Directed}} {
		if err := k.do(c.call, Op{Flags: c.flag}); !errors.Is(err, ErrNotSupported) {
			t.Errorf("%v without its capability: %v", c.flag, err)
		}
	}
}

func TestChecks(t *testing.T) {
	k := everything()
	b := func(n int) Segment { return Bytes(make([]byte, n)) }
	for _, c := range []struct {
		name string
		call call
		op   Op
		want error
	}{
		{"empty message", callSend, Op{}, nil},
		{"longest message", callSend, Op{Local: b(1000)}, nil},
		{"message too long", callSend, Op{Local: b(1001)}, ErrTooLong},
		{"message too long in pieces", callSendTagged, Op{Local: b(500), Locals: []Segment{b(501)}}, ErrTooLong},
		{"a receive may be longer", callRecv, Op{Local: b(5000)}, nil},
		{"longest read", callRead, Op{Local: b(2000)}, nil},
		{"read too long", callRead, Op{Local: b(2001)}, ErrTooLong},
		{"inject", callSend, Op{Local: b(64), Flags: Inject}, nil},
		{"inject too long", callSend, Op{Local: b(65), Flags: Inject}, ErrTooLong},
		{"write inject too long", callWrite, Op{Local: b(65), Flags: Inject}, ErrTooLong},
		{"three segments", callSend, Op{Locals: make([]Segment, 2)}, nil},
		{"three segments after an empty one", callSend, Op{Locals: make([]Segment, 3)}, nil},
		{"four segments", callSend, Op{Local: b(1), Locals: make([]Segment, 3)}, ErrTooLong},
		{"four segments to receive", callRecv, Op{Local: b(1), Locals: make([]Segment, 3)}, ErrTooLong},
		{"a list of four segments", callRecv, Op{Locals: make([]Segment, 4)}, ErrTooLong},
		{"multi in pieces", callRecv, Op{Local: b(100), Locals: []Segment{b(1)}, Flags: Multi}, ErrInvalid},

		{"peer of a receive", callRecv, Op{Peer: 1}, ErrInvalid},
		{"tag", callSendTagged, Op{Tag: 1<<48 - 1}, nil},
		{"tag too wide", callSendTagged, Op{Tag: 1 << 48}, ErrInvalid},
		{"mask too wide", callRecvTagged, Op{Ignore: 1 << 63}, ErrInvalid},
		{"tag of a message", callSend, Op{Tag: 1}, ErrInvalid},
		{"tag of a read", callRead, Op{Tag: 1}, ErrInvalid},
		{"mask of a send", callSendTagged, Op{Ignore: 1}, ErrInvalid},
		{"data", callSend, Op{Data: math.MaxUint32, Flags: RemoteData}, nil},
		{"data too wide", callSend, Op{Data: 1 << 32, Flags: RemoteData}, ErrInvalid},
		{"data of a write too wide", callWrite, Op{Data: 1 << 32, Flags: RemoteData}, ErrInvalid},
		{"data without the flag", callSend, Op{Data: 1}, ErrInvalid},
		{"key of a message", callSend, Op{Key: 1}, ErrInvalid},
		{"offset of a receive", callRecv, Op{Offset: 1}, ErrInvalid},
		{"remotes of a message", callSend, Op{Remotes: []RemoteSegment{{}}}, ErrInvalid},

		{"last offset", callRead, Op{Local: b(8), Offset: math.MaxUint64 - 8}, nil},
		{"offset wraps", callRead, Op{Local: b(8), Offset: math.MaxUint64 - 7}, ErrInvalid},
		{"remotes", callWrite, Op{Local: b(8), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 3}, {Key: 2, Offset: 0, Len: 5}}}, nil},
		{"remotes too short", callWrite, Op{Local: b(8), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 3}, {Key: 2, Offset: 0, Len: 4}}}, ErrInvalid},
		{"remotes too long", callWrite, Op{Local: b(8), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 9}}}, ErrInvalid},
		{"remotes wrap to the right sum", callWrite, Op{Local: b(8), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: math.MaxUint64}, {Key: 2, Offset: 0, Len: 9}}}, ErrInvalid},
		{"a remote segment wraps", callWrite, Op{Local: b(8), Remotes: []RemoteSegment{{Key: 1, Offset: math.MaxUint64, Len: 8}}}, ErrInvalid},
		{"three remotes", callWrite, Op{Local: b(3), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 1}, {Key: 2, Offset: 0, Len: 1}, {Key: 3, Offset: 0, Len: 1}}}, ErrTooLong},
		{"remotes and a key", callWrite, Op{Local: b(3), Key: 1, Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 3}}}, ErrInvalid},
	} {
		if err := k.do(c.call, c.op); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for c := range numCalls {
		if c == callRecv || c == callRecvTagged {
			continue
		}
		if err := k.post(c, &Op{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "no peer") {
			t.Errorf("%s to nobody: %v", calls[c].name, err)
		}
	}
	if err := k.post(callRecv, &Op{Flags: Directed}); !errors.Is(err, ErrInvalid) {
		t.Errorf("directed at nobody: %v", err)
	}
}

// Without limits nothing is too long.
func TestNoLimits(t *testing.T) {
	k := newChecker(&Domain{}, &Info{Caps: Msg | Tagged | RMA | RemoteCQData})
	for _, c := range []call{callSend, callSendTagged, callWrite} {
		op := Op{Local: Bytes(make([]byte, 1<<20)), Locals: make([]Segment, 100), Flags: Inject | RemoteData, Data: math.MaxUint64}
		if c == callSendTagged {
			op.Tag = math.MaxUint64
		}
		if err := k.do(c, op); err != nil {
			t.Errorf("%s: %v", calls[c].name, err)
		}
	}
}

func TestAtomicChecks(t *testing.T) {
	k := everything()
	b := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		name string
		a    Atomic
		want error
	}{
		{"sum", Atomic{Op: Op{Local: Bytes(b(16))}, Code: AtomicSum, Type: Int64}, nil},
		{"fetch", Atomic{Op: Op{Local: Bytes(b(16))}, Code: AtomicSum, Type: Int64, Result: b(16)}, nil},
		{"fetch into less", Atomic{Op: Op{Local: Bytes(b(16))}, Code: AtomicSum, Type: Int64, Result: b(8)}, ErrInvalid},
		{"half an element", Atomic{Op: Op{Local: Bytes(b(12))}, Code: AtomicSum, Type: Int64}, ErrInvalid},
		{"no element", Atomic{Code: AtomicSum, Type: Int64}, ErrInvalid},
		{"no code", Atomic{Op: Op{Local: Bytes(b(8))}, Type: Int64}, ErrInvalid},
		{"unknown code", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicMaskSwap + 1, Type: Int64}, ErrInvalid},
		{"unknown type", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicSum, Type: Complex128 + 1}, ErrInvalid},
		{"bits of a float", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicBitOr, Type: Float64}, ErrInvalid},
		{"order of complex", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicMax, Type: Complex64}, ErrInvalid},
		{"logic of a float", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicLogOr, Type: Float64}, nil},
		{"swap", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicSwapEq, Type: Int64, Compare: b(8), Result: b(8)}, nil},
		{"swap without result", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicSwapEq, Type: Complex64, Compare: b(8)}, nil},
		{"swap without comparison", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicSwapEq, Type: Int64}, ErrInvalid},
		{"comparison of a sum", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicSum, Type: Int64, Compare: b(8)}, ErrInvalid},
		{"read", Atomic{Code: AtomicRead, Type: Int64, Result: b(8)}, nil},
		{"read of nothing", Atomic{Code: AtomicRead, Type: Int64}, ErrInvalid},
		{"read with operands", Atomic{Op: Op{Local: Bytes(b(8))}, Code: AtomicRead, Type: Int64, Result: b(8)}, ErrInvalid},
		{"longest", Atomic{Op: Op{Local: Bytes(b(128))}, Code: AtomicSum, Type: Uint8}, nil},
		{"too long", Atomic{Op: Op{Local: Bytes(b(129))}, Code: AtomicSum, Type: Uint8}, ErrTooLong},
		{"read too long", Atomic{Code: AtomicRead, Type: Uint8, Result: b(129)}, ErrTooLong},
		{"remotes", Atomic{Op: Op{Local: Bytes(b(16)), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 8}, {Key: 2, Offset: 0, Len: 8}}}, Code: AtomicSum, Type: Int64}, nil},
		{"an element in two remotes", Atomic{Op: Op{Local: Bytes(b(16)), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 4}, {Key: 2, Offset: 0, Len: 12}}}, Code: AtomicSum, Type: Int64}, ErrInvalid},
		{"no element in a remote", Atomic{Op: Op{Local: Bytes(b(16)), Remotes: []RemoteSegment{{Key: 1, Offset: 0, Len: 16}, {Key: 2, Offset: 0, Len: 0}}}, Code: AtomicSum, Type: Int64}, ErrInvalid},
		{"operands in pieces", Atomic{Op: Op{Local: Bytes(b(3)), Locals: []Segment{Bytes(b(13))}}, Code: AtomicSum, Type: Int64}, nil},
		{"injected", Atomic{Op: Op{Local: Bytes(b(16)), Flags: Inject}, Code: AtomicSum, Type: Int64}, nil},
		{"injected with a result", Atomic{Op: Op{Local: Bytes(b(8)), Flags: Inject}, Code: AtomicSum, Type: Int64, Result: b(8)}, ErrInvalid},
		{"injected with a comparison", Atomic{Op: Op{Local: Bytes(b(8)), Flags: Inject}, Code: AtomicSwapEq, Type: Int64, Compare: b(8)}, ErrInvalid},
		{"read of a range that wraps", Atomic{Op: Op{Offset: math.MaxUint64}, Code: AtomicRead, Type: Int64, Result: b(8)}, ErrInvalid},
	} {
		c.a.Peer = 1
		if err := k.atomic(&c.a); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// Whatever is in an operation: no panic, and what is refused is refused with one of the four errors.
func TestChecksOfAnything(t *testing.T) {
	k := everything()
	number := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 20), rapid.Uint64())
	segment := rapid.Custom(func(t *rapid.T) Segment { return Bytes(make([]byte, rapid.IntRange(0, 600).Draw(t, "len"))) })
	rapid.Check(t, func(t *rapid.T) {
		a := Atomic{
			Op: Op{
				Local: segment.Draw(t, "local"), Locals: rapid.SliceOfN(segment, 0, 3).Draw(t, "locals"),
				Peer: Peer(number.Draw(t, "peer")), Key: Key(number.Draw(t, "key")), Offset: number.Draw(t, "offset"),
				Remotes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) RemoteSegment {
					return RemoteSegment{Key: Key(number.Draw(t, "key")), Offset: number.Draw(t, "offset"), Len: number.Draw(t, "len")}
				}), 0, 3).Draw(t, "remotes"),
				Tag: number.Draw(t, "tag"), Ignore: number.Draw(t, "ignore"), Data: number.Draw(t, "data"),
				Flags: Flags(rapid.Uint32Range(0, 1<<11).Draw(t, "flags")),
			},
			Code: AtomicCode(rapid.Byte().Draw(t, "code")), Type: DataType(rapid.Byte().Draw(t, "type")),
			Compare: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "compare"), Result: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "result"),
		}
		for c := range numCalls {
			err := k.post(c, &a.Op)
			if c == callAtomic {
				err = k.atomic(&a)
			}
			if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrNotSupported) {
				t.Fatalf("%s: %v", calls[c].name, err)
			}
			if err == nil && c >= callRead && c != callAtomic && a.Offset+uint64(a.Len()) < a.Offset {
				t.Fatalf("%s of a range that wraps went by", calls[c].name)
			}
		}
	})
}

// The fabric's share of a post and a completion allocates nothing.
func TestNoAllocation(t *testing.T) {
	p := fakeprov.New("fake")
	a := open(t, p, "a")
	m, err := a.d.Alloc(4096, PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	k := &a.d.check
	k.caps |= Atomics
	op := Op{
		Local: m.Slice(0, 8), Locals: []Segment{m.Slice(8, 8)}, Peer: 1, Flags: RemoteData, Data: 1,
		Remotes: []RemoteSegment{{Key: 1, Len: 16}},
	}
	at := Atomic{Op: Op{Local: m.Slice(0, 8), Peer: 1}, Code: AtomicSum, Type: Int64}
	if n := testing.AllocsPerRun(100, func() {
		op.Local = m.Slice(16, 8)
		if k.post(callWrite, &op) != nil || k.atomic(&at) != nil {
			t.Error("a good operation was refused")
		}
	}); n != 0 {
		t.Errorf("a check allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := a.ep.result(callSend, 1, ErrAgain); !errors.Is(err, ErrAgain) {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("ErrAgain allocates %v times", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	p := fakeprov.New("fake")
	a := open(b, p, "a")
	m, err := a.d.Alloc(4096, PeerRead)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		op   Op
	}{{"raw", Op{Local: Bytes(m.Bytes()[:8]), Peer: 1}}, {"arena", Op{Local: m.Slice(0, 8), Peer: 1}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := a.d.check.post(callSend, &c.op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

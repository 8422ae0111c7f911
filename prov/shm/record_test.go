package shm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var compareRecord = cmp.AllowUnexported(record{})

func someRecords() []record {
	var all []record
	for op := uint8(1); op < opCount; op++ {
		for _, flags := range []uint8{0, recTagged, recData, recAfter, recFlags} {
			r := record{op: op, flags: flags, status: statusKey}
			if hasContext(op, flags) {
				r.context = 0xdeadbeefcafe
			}
			for i := range forms[op].words {
				r.words[i] = 0x0102030405060708 * uint64(i+1)
			}
			if flags&recData != 0 {
				r.data = 77
			}
			if flags&recAfter != 0 {
				r.after = 88
			}
			r.payload = []byte("payload")
			all = append(all, r)
		}
	}
	return all
}

func TestRecord(t *testing.T) {
	for _, r := range someRecords() {
		b := make([]byte, recordHead+len(r.payload))
		n := r.put(b)
		if n != recordLen(r.op, r.flags)+len(r.payload) || recordLen(r.op, r.flags) > recordHead {
			t.Fatalf("operation %d takes %d bytes", r.op, n)
		}
		var got record
		if err := got.parse(b[:n], forms[r.op].control); err != nil {
			t.Fatalf("operation %d: %v", r.op, err)
		}
		if diff := cmp.Diff(r, got, compareRecord); diff != "" {
			t.Errorf("operation %d: %s", r.op, diff)
		}
		for i := range recordLen(r.op, r.flags) {
			if err := new(record).parse(b[:i], forms[r.op].control); !errors.Is(err, errRecord) {
				t.Errorf("operation %d: the first %d bytes: %v", r.op, i, err)
			}
		}
	}
}

// The bytes are these, on every machine.
func TestRecordOnTheWire(t *testing.T) {
	r := record{op: opInline, flags: recTagged | recData, words: [3]uint64{2}, data: 3, payload: []byte("x")}
	b := make([]byte, 64)
	want := []byte{1, 3, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'x'}
	if got := b[:r.put(b)]; !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

func TestBadRecord(t *testing.T) {
	for name, head := range map[string][]byte{
		"no operation":      {0, 0, 0, 0, 0, 0, 0, 0},
		"unknown operation": {opCount, 0, 0, 0, 0, 0, 0, 0},
		"unknown status":    {opInline, 0, statusCount, 0, 0, 0, 0, 0},
		"unknown flags":     {opInline, 0x80, 0, 0, 0, 0, 0, 0},
		"rest of the word":  {opInline, 0, 0, 0, 0, 0, 0, 1},
		"another lane":      {opAck, 0, 0, 0, 0, 0, 0, 0},
	} {
		if err := new(record).parse(append(head, make([]byte, 64)...), false); !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, seg := range []uint32{0, 1, noSegment} {
		for _, n := range []int{0, 1, 1<<32 - 1} {
			if s, l := unplace(place(seg, n)); s != seg || l != uint64(n) {
				t.Errorf("%d, %d becomes %d, %d", seg, n, s, l)
			}
		}
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	b := make([]byte, 128)
	r := record{op: opInline, payload: []byte("12345678")}
	var back record
	if n := testing.AllocsPerRun(100, func() {
		if back.parse(b[:r.put(b)], false) != nil {
			t.Fatal("not a record")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range someRecords() {
		b := make([]byte, recordHead+len(r.payload))
		f.Add(b[:r.put(b)])
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var r record
		if r.parse(wire, false) != nil && r.parse(wire, true) != nil {
			return
		}
		b := make([]byte, len(wire))
		if n := r.put(b); !bytes.Equal(b[:n], wire) {
			t.Fatalf("%x is read, and written as %x", wire, b[:n])
		}
	})
}

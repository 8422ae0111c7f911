package carrier

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// met returns a link to a peer of bytes, which has shaken hands.
func met(t *testing.T, a *CM) (*raw, *link) {
	t.Helper()
	h := newHost(t)
	wait := dialAsync(t.Context(), a, h.contact(77))
	p, _, _ := h.accept()
	p.send(hello(77, true).Append(nil))
	d := next(t, "link", wait)
	if d.err != nil {
		t.Fatal(d.err)
	}
	return p, d.link.(*link)
}

// TestSendWritesItself: a small record is with the kernel when Send returns, and so
// is a group; a large one need not be.
func TestSendWritesItself(t *testing.T) {
	if !sys.CanWriteNow {
		t.Skip("this system has no write that does not wait (sys.WriteNow)")
	}
	a, _ := open(t, Config{})
	p, l := met(t, a)
	greeting := p.r.Offset()
	f := testFormat(t, "F")
	done := 0
	small := func(n int) Record {
		r := record(f, n, 100)
		r.Done = func(err error) {
			if done++; err != nil {
				t.Error(err)
			}
		}
		return r
	}
	if err := l.Send(small(0)); err != nil || done != 1 {
		t.Errorf("%v, done %d", err, done)
	}
	if err := l.SendAll([]Record{small(1), small(2)}); err != nil || done != 3 {
		t.Errorf("%v, done %d", err, done)
	}
	if info := l.Info(); info.MessagesOut != 3 || info.QueuedRecords != 0 || info.QueuedBytes != 0 {
		t.Errorf("%+v", info)
	}
	p.unit() // the push
	for i := range 3 {
		if u := p.unit().(cm.Data); number(u.Record) != i {
			t.Errorf("record %d came as number %d", i, number(u.Record))
		}
	}
	if got := l.Info().BytesOut; got != uint64(p.r.Offset()-greeting) {
		t.Errorf("%d bytes out, %d came", got, p.r.Offset()-greeting)
	}
	_ = p.conn.Close()
}

// TestSendLeavesTheRest: what the kernel has no room for goes out later, behind
// what it took of the same record, and in order. Send does not wait meanwhile.
func TestSendLeavesTheRest(t *testing.T) {
	a, _ := open(t, Config{})
	p, l := met(t, a)
	if err := l.conn.SetWriteBuffer(20 << 10); err != nil {
		t.Fatal(err)
	}
	f := testFormat(t, "F")
	done := make(chan error, 1<<14)
	var want []Record
	for n := 0; l.Info().QueuedRecords < 100; n++ {
		r := record(f, n, n%7000)
		for i := range r.Parts[1] {
			r.Parts[1][i] = byte(n + i)
		}
		r.Done = func(err error) { done <- err }
		if err := l.Send(r); err != nil {
			t.Fatal(err)
		}
		want = append(want, r)
	}
	p.unit() // the push
	for n, r := range want {
		if u := p.unit().(cm.Data); !bytes.Equal(u.Record, bytesOf(r)) {
			t.Fatalf("record %d of %d is damaged", n, len(want))
		}
	}
	for range want {
		if err := next(t, "Done", done); err != nil {
			t.Error(err)
		}
	}
	_ = p.conn.Close()
}

// TestSendMeetsTheEnd: a record that a Send has begun to write when the link goes
// down is done with an error, once, as are those behind it.
func TestSendMeetsTheEnd(t *testing.T) {
	a, r := open(t, Config{})
	p, l := met(t, a)
	if err := l.conn.SetWriteBuffer(20 << 10); err != nil {
		t.Fatal(err)
	}
	f := testFormat(t, "F")
	done := make(chan error, 1<<14)
	sent := 0
	for ; l.Info().QueuedRecords < 100; sent++ {
		out := record(f, sent, 5000)
		out.Done = func(err error) { done <- err }
		if err := l.Send(out); err != nil {
			t.Fatal(err)
		}
	}
	l.Abort(nil)
	next(t, "end", r.lost)
	failed := 0
	for range sent {
		if next(t, "Done", done) != nil {
			failed++
		}
	}
	nothingIn(t, "second Done", done)
	if info := l.Info(); failed < 90 || info.QueuedRecords != 0 || info.QueuedBytes != 0 {
		t.Errorf("%d of %d failed, %+v", failed, sent, info)
	}
	_ = p.conn.Close()
}

// TestSendAllocates: what a small record costs does not depend on its link.
func TestSendAllocates(t *testing.T) {
	a, _ := open(t, Config{})
	p, l := met(t, a)
	r := record(testFormat(t, "F"), 1, 8)
	got := testing.AllocsPerRun(100, func() {
		if err := l.Send(r); err != nil {
			t.Fatal(err)
		}
	})
	if sys.CanWriteNow && got > 0 {
		t.Errorf("%v allocations for a record", got)
	}
	_ = p.conn.Close()
}

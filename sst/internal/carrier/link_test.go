package carrier

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

func TestMessagesBothWays(t *testing.T) {
	a, ra := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "Ping")
	l := dial(t, a, b.Contact())
	sent := record(f, 1, 100)
	if err := l.Send(sent); err != nil {
		t.Fatal(err)
	}
	in := next(t, "ping", rb.got)
	if in.format != "Ping" || !bytes.Equal(in.data, bytesOf(sent)) {
		t.Errorf("%s % x", in.format, in.data)
	}
	if err := in.link.Send(record(f, 2, 0)); err != nil {
		t.Fatal(err)
	}
	back := next(t, "pong", ra.got)
	if back.link != l || number(back.data) != 2 {
		t.Errorf("%v, %d", back.link, number(back.data))
	}

	out, inb := l.Info(), in.link.Info()
	if out.Inbound || !inb.Inbound || out.Local != inb.Remote || out.Remote != inb.Local {
		t.Errorf("ends: %+v and %+v", out, inb)
	}
	if out.Release != ReleaseWeft || inb.Release != ReleaseNewer {
		t.Errorf("releases %v and %v", out.Release, inb.Release)
	}
	if out.PeerCMID != b.id || inb.PeerCMID != a.id || out.PeerPort != b.port || inb.PeerPort != a.port {
		t.Errorf("identities: %+v and %+v", out, inb)
	}
	if out.MessagesIn != 1 || inb.MessagesIn != 1 || out.FormatsKnown != 1 || inb.FormatsKnown != 1 {
		t.Errorf("counters: %+v and %+v", out, inb)
	}
}

func TestCountersAgree(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	done := make(chan error, 1)
	r := record(f, 1, 50_000)
	r.Done = func(err error) { done <- err }
	if err := l.Send(r); err != nil {
		t.Fatal(err)
	}
	in := next(t, "record", rb.got)
	if err := next(t, "Done", done); err != nil {
		t.Fatal(err)
	}
	out, inb := l.Info(), in.link.Info()
	// The receiver's count includes the opening of 24 bytes.
	if out.BytesOut+cm.PreambleSize+cm.HandshakeSize != inb.BytesIn || out.MessagesOut != 1 || out.FormatsSent != 1 {
		t.Errorf("sent %+v, received %+v", out, inb)
	}
	if out.QueuedBytes != 0 || out.QueuedRecords != 0 {
		t.Errorf("still queued: %+v", out)
	}
}

func TestOrderAndDone(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "Seq")
	l := dial(t, a, b.Contact())
	const n = 5000
	var done atomic.Int64
	for i := range n {
		r := record(f, i, i%300)
		r.Done = func(err error) {
			if err != nil {
				t.Error(err)
			}
			done.Add(1)
		}
		if err := l.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if got := number(next(t, "record", rb.got).data); got != i {
			t.Fatalf("record %d came as number %d", got, i)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next(t, "end", l.Done())
	if done.Load() != n {
		t.Errorf("%d of %d were done", done.Load(), n)
	}
}

// TestPushOnce looks at the bytes: a push before the first record of a format, on
// each connection anew.
func TestPushOnce(t *testing.T) {
	a, _ := open(t, Config{})
	f, g := testFormat(t, "F"), testFormat(t, "G")
	for id := range uint32(2) {
		h := newHost(t)
		wait := dialAsync(t.Context(), a, h.contact(77+id))
		p, pre, hs := h.accept()
		if pre.Port != a.port || hs != hello(a.id, false) {
			t.Errorf("opening: %+v, %+v", pre, hs)
		}
		p.send(hello(77+id, true).Append(nil))
		d := next(t, "link", wait)
		if d.err != nil {
			t.Fatal(d.err)
		}
		for i, format := range []*ffs.Format{f, f, g, f, g} {
			_ = d.link.Send(record(format, i, 10))
		}
		var got []string
		for range 7 {
			switch u := p.unit().(type) {
			case cm.FormatMessage:
				fid := f.ID()
				if bytes.Equal(u.First, fid[:]) && bytes.Equal(u.Second, f.Body()) {
					got = append(got, "push F")
				} else {
					got = append(got, "push G")
				}
			case cm.Data:
				got = append(got, "data")
			}
		}
		want := []string{"push F", "data", "data", "push G", "data", "data", "data"}
		if !slices.Equal(got, want) {
			t.Errorf("units: %v", got)
		}
	}
}

func TestSendRefusesBadRecords(t *testing.T) {
	a, _ := open(t, Config{})
	b, _ := open(t, Config{})
	f, g := testFormat(t, "F"), testFormat(t, "G")
	l := dial(t, a, b.Contact())
	for name, r := range map[string]Record{
		"nothing":      {},
		"no format":    {Parts: record(f, 1, 1).Parts},
		"no parts":     {Format: f},
		"short part":   {Format: f, Parts: [][]byte{make([]byte, 11)}},
		"other format": {Format: g, Parts: record(f, 1, 1).Parts},
	} {
		var told error
		calls := 0
		r.Done = func(err error) { told = err; calls++ }
		err := l.Send(r)
		if !errors.Is(err, ErrRecord) || told != err || calls != 1 {
			t.Errorf("%s: %v; Done %d times with %v", name, err, calls, told)
		}
	}
}

// TestNoLongRecordsTo210 holds records of 2 GiB back from a release that would
// cut their length (docs/wire/cm.md §9).
func TestNoLongRecordsTo210(t *testing.T) {
	c, r := open(t, Config{})
	p := join(t, c, cm.ID210, 4000)
	f := testFormat(t, "F")
	p.push(f)
	p.send(cm.Data{Record: bytesOf(record(f, 1, 1))}.Append(nil))
	l := next(t, "record", r.got).link
	long := record(f, 1, 1<<20)
	for len(long.Parts) <= 2048 {
		long.Parts = append(long.Parts, long.Parts[1])
	}
	if err := l.Send(long); !errors.Is(err, ErrRecord) {
		t.Error(err)
	}
	if info := l.Info(); info.Release != Release210 || info.QueuedBytes != 0 {
		t.Errorf("%+v", info)
	}
}

func TestSendAfterTheEnd(t *testing.T) {
	a, ra := open(t, Config{})
	b, _ := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	_ = l.Close()
	calls := 0
	r := record(f, 1, 1)
	r.Done = func(error) { calls++ }
	if err := l.Send(r); !errors.Is(err, ErrClosed) || calls != 1 {
		t.Errorf("after Close: %v, Done %d times", err, calls)
	}
	next(t, "end", ra.lost)
	if err := l.Send(r); !errors.Is(err, ErrClosed) || calls != 2 {
		t.Errorf("after the end: %v, Done %d times", err, calls)
	}

	boom := errors.New("boom")
	l = dial(t, a, b.Contact())
	l.Abort(boom)
	if err := l.Send(r); !errors.Is(err, boom) {
		t.Errorf("after Abort: %v", err)
	}
}

func TestLostExactlyOnce(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name       string
		end        func(near, far Link)
		near, far  error
		nearClosed bool
	}{
		{"near closes", func(n, _ Link) { _ = n.Close(); _ = n.Close() }, nil, ErrPeerClosed, true},
		{"far closes", func(_, f Link) { _ = f.Close() }, ErrPeerClosed, nil, false},
		{"near aborts", func(n, _ Link) { n.Abort(boom); n.Abort(errors.New("too late")); _ = n.Close() }, boom, nil, false},
		{"no reason", func(n, _ Link) { n.Abort(nil) }, ErrAborted, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, ra := open(t, Config{})
			b, rb := open(t, Config{})
			near := dial(t, a, b.Contact())
			_ = near.Send(record(testFormat(t, "F"), 1, 1))
			far := next(t, "record", rb.got).link
			tt.end(near, far)
			l := next(t, "near end", ra.lost)
			if l.link != near || !errors.Is(l.err, tt.near) || (l.err == nil) != (tt.near == nil) {
				t.Errorf("near: %v", l.err)
			}
			if l.err != nil {
				if le, ok := errors.AsType[*LinkError](l.err); !ok || le.Peer != near.Info().Peer || le.Error() == "" {
					t.Errorf("near: not a LinkError: %v", l.err)
				}
			}
			l = next(t, "far end", rb.lost)
			if l.link != far || tt.far != nil && !errors.Is(l.err, tt.far) {
				t.Errorf("far: %v", l.err)
			}
			next(t, "near done", near.Done())
			next(t, "far done", far.Done())
			_, _ = a.Close(), b.Close()
			nothingIn(t, "second loss", ra.lost)
			nothingIn(t, "second loss", rb.lost)
		})
	}
}

func TestCloseWritesTheQueue(t *testing.T) {
	a, ra := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	const n = 500
	for i := range n {
		if err := l.Send(record(f, i, 20_000)); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	for i := range n {
		if got := number(next(t, "record", rb.got).data); got != i {
			t.Fatalf("%d instead of %d", got, i)
		}
	}
	if e := next(t, "end", ra.lost); e.err != nil {
		t.Errorf("near: %v", e.err)
	}
	if e := next(t, "end", rb.lost); !errors.Is(e.err, ErrPeerClosed) {
		t.Errorf("far: %v", e.err)
	}
}

// stuck makes a link whose peer has never read, with more queued than the kernel
// takes.
func stuck(t *testing.T, c *CM, r *recorder) (*raw, Link, chan error) {
	t.Helper()
	p := join(t, c, 77, 0)
	f := testFormat(t, "F")
	p.push(f)
	p.send(cm.Data{Record: bytesOf(record(f, 1, 1))}.Append(nil))
	l := next(t, "record", r.got).link
	done := make(chan error, 100)
	for i := range 40 {
		out := record(f, i, 1<<20)
		out.Done = func(err error) { done <- err }
		if err := l.Send(out); err != nil {
			t.Fatal(err)
		}
	}
	return p, l, done
}

func TestCloseIsBounded(t *testing.T) {
	c, r := open(t, Config{CloseTimeout: 100 * time.Millisecond})
	_, l, done := stuck(t, c, r)
	start := time.Now()
	_ = l.Close()
	e := next(t, "end", r.lost)
	if e.err == nil {
		t.Error("lost records were called delivered")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	next(t, "Done of the link", l.Done())
	failed := 0
	for range 40 {
		if err := next(t, "Done", done); err != nil {
			failed++
		}
	}
	nothingIn(t, "Done", done)
	if info := l.Info(); failed == 0 || info.QueuedRecords != 0 || info.QueuedBytes != 0 {
		t.Errorf("%d failed, %+v", failed, info)
	}
}

func TestEndpointCloseIsBounded(t *testing.T) {
	c, r := open(t, Config{CloseTimeout: 100 * time.Millisecond})
	stuck(t, c, r)
	silent := connect(t, c) // in its handshake
	_, _, done := stuck(t, c, r)
	start := time.Now()
	closed := make(chan error, 2)
	go func() { closed <- c.Close() }()
	go func() { closed <- c.Close() }()
	for range 2 {
		if err := next(t, "Close", closed); err != nil {
			t.Error(err)
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	silent.ended()
	if len(r.lost) != 2 || len(done) != 40 {
		t.Errorf("%d links lost, %d of 40 records done", len(r.lost), len(done))
	}
	if _, err := c.Dial(t.Context(), c.Contact()); !errors.Is(err, ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
}

func TestAbortDropsAtOnce(t *testing.T) {
	c, r := open(t, Config{CloseTimeout: time.Hour})
	p, l, done := stuck(t, c, r)
	_ = l.Close() // would wait for an hour
	l.Abort(nil)
	if e := next(t, "end", r.lost); !errors.Is(e.err, ErrAborted) {
		t.Error(e.err)
	}
	for range 40 {
		next(t, "Done", done)
	}
	p.ended()
}

// TestBackPressure: while the peer takes nothing, nothing is taken from it.
func TestBackPressure(t *testing.T) {
	const limit = 4
	c, r := open(t, Config{MaxQueued: limit})
	p, l, done := stuck(t, c, r)
	const n = 50
	for i := range n {
		p.send(cm.Data{Record: bytesOf(record(testFormat(t, "F"), i, 10))}.Append(nil))
	}
	for range 40 + 1 { // the push and all records
		p.unit()
	}
	for i := range n {
		e := next(t, "record", r.got)
		// One message could have been on its way in when the queue filled up.
		if number(e.data) != i || i > 0 && e.queued > limit {
			t.Errorf("record %d came as number %d with %d queued", number(e.data), i, e.queued)
		}
	}
	for range 40 {
		if err := next(t, "Done", done); err != nil {
			t.Error(err)
		}
	}
	if info := l.Info(); info.QueuedRecords != 0 || info.MessagesOut != 40 || info.MessagesIn != n+1 {
		t.Errorf("%+v", info)
	}
}

func TestStuckPeerHoldsUpNobody(t *testing.T) {
	a, ra := open(t, Config{MaxQueued: 1, CloseTimeout: 50 * time.Millisecond})
	stuck(t, a, ra)
	connect(t, a) // and one that never says a word
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, b, a.Contact())
	for i := range 100 {
		if err := l.Send(record(f, i, 10)); err != nil {
			t.Fatal(err)
		}
		e := next(t, "record", ra.got)
		if err := e.link.Send(record(f, i, 10)); err != nil {
			t.Fatal(err)
		}
		next(t, "answer", rb.got)
	}
}

func TestLargeRecordsReuseMemory(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	seen := map[*byte]int{}
	for i := range 8 {
		if err := l.Send(record(f, i, 8<<20)); err != nil {
			t.Fatal(err)
		}
		e := next(t, "record", rb.got)
		if number(e.data) != i || len(e.data) != variantHeader+24+8<<20 {
			t.Fatalf("record %d of %d bytes", number(e.data), len(e.data))
		}
		seen[&e.data[0]]++
		e.free()
		e.free() // idempotent: must not enter the pool twice
	}
	if len(seen) > 1 {
		t.Errorf("8 records in %d places", len(seen))
	}
}

// TestMessageAfterCloseIsDropped: between Close and Lost the Handler hears nothing.
func TestMessageAfterCloseIsDropped(t *testing.T) {
	c, r := open(t, Config{})
	p := join(t, c, 77, 0)
	f := testFormat(t, "F")
	p.push(f)
	one := cm.Data{Record: bytesOf(record(f, 1, 1))}.Append(nil)
	p.send(one)
	l := next(t, "record", r.got).link
	_ = l.Close()
	p.send(one)
	p.ended() // our end of stream
	_ = p.conn.Close()
	if e := next(t, "end", r.lost); e.err != nil {
		t.Error(e.err)
	}
	nothingIn(t, "message", r.got)
}

// callbacks uses links from inside the callbacks.
type callbacks struct {
	*recorder
	answer Record
}

func (h *callbacks) Message(l Link, in Inbound) {
	_ = l.Send(h.answer)
	_ = l.Close()
	h.recorder.Message(l, in)
}

func (h *callbacks) Lost(l Link, err error) {
	l.Abort(nil)
	_ = l.Close()
	_ = l.Send(h.answer)
	h.recorder.Lost(l, err)
}

func TestCallbacksMayUseTheLink(t *testing.T) {
	f := testFormat(t, "F")
	h := &callbacks{newRecorder(), record(f, 9, 9)}
	a, _ := open(t, Config{Handler: h})
	b, rb := open(t, Config{})
	l := dial(t, b, a.Contact())
	_ = l.Send(record(f, 1, 1))
	if got := number(next(t, "answer", rb.got).data); got != 9 {
		t.Errorf("number %d", got)
	}
	if e := next(t, "end", h.lost); e.err != nil {
		t.Error(e.err)
	}
	if e := next(t, "far end", rb.lost); !errors.Is(e.err, ErrPeerClosed) {
		t.Error(e.err)
	}
}

func TestReleaseString(t *testing.T) {
	for r, want := range map[Release]string{ReleaseUnknown: "unknown", Release210: "ADIOS2 2.10 or earlier",
		ReleaseNewer: "ADIOS2 2.11 or later, or Weft", ReleaseWeft: "Weft"} {
		if r.String() != want {
			t.Errorf("%d: %s", r, r)
		}
	}
}

// TestSendAll: records that belong together are written together, in order.
func TestSendAll(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	const groups, each = 200, 3
	for i := range groups {
		var group []Record
		for k := range each {
			group = append(group, record(f, i*each+k, k*100))
		}
		if err := l.SendAll(group); err != nil {
			t.Fatal(err)
		}
		clear(group)
	}
	for i := range groups * each {
		if got := number(next(t, "record", rb.got).data); got != i {
			t.Fatalf("record %d came as number %d", got, i)
		}
	}
	if err := l.SendAll(nil); err != nil {
		t.Error(err)
	}
}

// TestSendAllInOneWrite: the peer gets a group with one read, which it would not
// with a write for each.
func TestSendAllInOneWrite(t *testing.T) {
	a, _ := open(t, Config{})
	f := testFormat(t, "F")
	h := newHost(t)
	wait := dialAsync(t.Context(), a, h.contact(77))
	p, _, _ := h.accept()
	p.send(hello(77, true).Append(nil))
	d := next(t, "link", wait)
	if d.err != nil {
		t.Fatal(d.err)
	}
	group := []Record{record(f, 1, 10), record(f, 2, 20), record(f, 3, 30)}
	id := f.ID()
	want := len(cm.Push(id[:], f.Body()).Append(nil))
	for _, r := range group {
		want += len(cm.Data{Record: bytesOf(r)}.Append(nil))
	}
	if err := d.link.SendAll(group); err != nil {
		t.Fatal(err)
	}
	if n, err := p.conn.Read(make([]byte, 4096)); n != want || err != nil {
		t.Errorf("%d of %d bytes at once, %v", n, want, err)
	}
	_ = p.conn.Close()
}

// TestSendAllOrNothing: one bad record, or an end, refuses the group.
func TestSendAllOrNothing(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	calls := 0
	group := []Record{record(f, 1, 1), {Format: f}, record(f, 2, 1)}
	for i := range group {
		group[i].Done = func(err error) {
			calls++
			if !errors.Is(err, ErrRecord) && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	}
	if err := l.SendAll(group); !errors.Is(err, ErrRecord) || calls != 3 {
		t.Errorf("%v, %d calls", err, calls)
	}
	if info := l.Info(); info.QueuedRecords != 0 || info.MessagesOut != 0 {
		t.Errorf("%+v", info)
	}
	_ = l.Close()
	if err := l.SendAll(group[:1]); !errors.Is(err, ErrClosed) || calls != 4 {
		t.Errorf("%v, %d calls", err, calls)
	}
	next(t, "end", l.Done())
	nothingIn(t, "record", rb.got)
}

// TestPeerIsWeft: what is not acknowledged at once still arrives.
func TestPeerIsWeft(t *testing.T) {
	a, _ := open(t, Config{})
	b, rb := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, a, b.Contact())
	if !l.(*link).reader.source.off.Load() {
		t.Error("a peer that we dialled by its mark is not known to be Weft")
	}
	_ = l.Send(record(f, 1, 1))
	in := next(t, "record", rb.got).link
	if in.(*link).reader.source.off.Load() {
		t.Error("a peer that dialled us is taken for Weft")
	}
	in.PeerIsWeft()
	_ = l.Send(record(f, 2, 1))
	if e := next(t, "record", rb.got); number(e.data) != 2 {
		t.Error("lost")
	}
}

// TestSmallBehindLarge: what is small goes out in the write of the large record
// before it, a second large one does not.
func TestSmallBehindLarge(t *testing.T) {
	a, _ := open(t, Config{})
	_, l := met(t, a)
	f := testFormat(t, "F")
	l.mu.Lock()
	l.busy = true // the writing goroutine keeps its hands off
	l.mu.Unlock()
	big, tiny := record(f, 1, maxWriteBytes), record(f, 2, 10)
	for _, c := range []struct {
		records []Record
		want    int
	}{
		{[]Record{big, tiny}, 2},
		{[]Record{tiny, big, tiny, tiny}, 4},
		{[]Record{big, big, tiny}, 1},
		{[]Record{tiny, tiny}, 2},
	} {
		if n := l.gather(c.records); n != c.want {
			t.Errorf("%d of %d records in one write, want %d", n, len(c.records), c.want)
		}
	}
	l.mu.Lock()
	l.busy = false
	l.mu.Unlock()
}

package dp

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/step"
)

// head is where data begin in the answers of these tests.
const head = 64

// replyTo is the answer to a request, without its data.
func replyTo(q sentRequest) *sstmsg.ReadReply {
	return &sstmsg.ReadReply{Step: q.msg.Step, ReaderID: q.msg.ReaderID, Condition: q.msg.Condition}
}

// placed brings an answer as the carrier does: into place.
func placed(t *testing.T, e *Evpath, q sentRequest) {
	t.Helper()
	m := replyTo(q)
	p := e.Place(m, head, head+int(q.msg.Length))
	if p == nil {
		t.Fatal("no place")
	}
	b, ok := p.Bytes()
	if !ok {
		t.Fatal("revoked")
	}
	copy(b, blockOf(q.msg.Step, q.rank, int(q.msg.Offset+q.msg.Length))[q.msg.Offset:])
	m.Data = sstmsg.ByteBlob(b)
	e.Reply(m, p)
}

// TestPlace reads several pieces, one of them placed, and takes a retained step
// along.
func TestPlace(t *testing.T) {
	e, sent := newPlane(t)
	e.Step(1, ModeRequest)
	for number := int64(1); number < 4; number++ {
		pieces := []step.Piece{piece(0, 8, 100), piece(1, 0, 8), piece(2, 5, 100)}
		done := read(t.Context(), e, number, ModeRequest, pieces...)
		for range pieces {
			if q := next(t, "request", sent); q.rank == 1 {
				answer(e, q)
			} else {
				placed(t, e, q)
			}
		}
		if err := next(t, "end of Read", done); err != nil {
			t.Fatal(err)
		}
		check(t, number, pieces)
		if number > 1 {
			e.Forget(number)
		}
	}
	p := piece(1, 3, 50)
	done := read(t.Context(), e, 1, ModeRequest, p) // of the step that was kept
	placed(t, e, next(t, "request", sent))
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 1, []step.Piece{p})
	if n := e.Stats()[0].Replied; n != 300 {
		t.Errorf("counted %d bytes of rank 0", n)
	}
}

// TestPlaceOfNothing declines answers that nobody waits for, or of another length:
// the length is the peer's word.
func TestPlaceOfNothing(t *testing.T) {
	e, sent := newPlane(t)
	p := piece(0, 0, 8)
	done := read(t.Context(), e, 0, ModeRequest, p)
	q := next(t, "request", sent)
	for _, total := range []int{head + 7, head + 9, 0, -1, head, 1 << 40} {
		if e.Place(replyTo(q), head, total) != nil {
			t.Errorf("a place for a record of %d bytes", total)
		}
	}
	if e.Place(&sstmsg.ReadReply{Condition: q.msg.Condition + 1}, head, head+8) != nil {
		t.Error("a place for an answer to nothing")
	}
	placed(t, e, q)
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 0, []step.Piece{p})
	if e.Place(replyTo(q), head, head+8) != nil {
		t.Error("a place for a repeat")
	}
}

// TestAnswersTwice: while one answer is read into place a second one must not
// write there, and the read cannot tell which is right.
func TestAnswersTwice(t *testing.T) {
	for name, second := range map[string]func(e *Evpath, q sentRequest){
		"the same way": func(e *Evpath, q sentRequest) {
			if e.Place(replyTo(q), head, head+8) != nil {
				t.Error("two places for one piece")
			}
			answer(e, q)
		},
		"empty": func(e *Evpath, q sentRequest) { e.Reply(replyTo(q), nil) },
		"too long": func(e *Evpath, q sentRequest) {
			m := replyTo(q)
			m.Data = sstmsg.ByteBlob(make([]byte, 9))
			e.Reply(m, nil)
		},
	} {
		e, sent := newPlane(t)
		p := piece(0, 0, 8)
		done := read(t.Context(), e, 0, ModeRequest, p)
		q := next(t, "request", sent)
		first := e.Place(replyTo(q), head, head+8)
		second(e, q)
		err := next(t, "end of Read", done)
		if !errors.Is(err, errReply) && !errors.Is(err, errEmpty) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := first.Bytes(); ok {
			t.Errorf("%s: the first place is still open", name)
		}
		m := replyTo(q)
		m.Data = sstmsg.ByteBlob(p.Dst)
		e.Reply(m, first) // its end changes nothing any more
		if !bytes.Equal(p.Dst, make([]byte, 8)) {
			t.Errorf("%s: something was written", name)
		}
	}
}

// TestPlaceRevoked takes memory back whatever ends the read.
func TestPlaceRevoked(t *testing.T) {
	for name, end := range map[string]func(e *Evpath, cancel func()){
		"cancelled": func(_ *Evpath, cancel func()) { cancel() },
		"rank lost": func(e *Evpath, _ func()) { e.FailRank(0, errTest) },
		"another rank lost": func(e *Evpath, _ func()) {
			e.FailRank(1, errTest)
		},
		"failed": func(e *Evpath, _ func()) { e.Fail(errTest) },
		"closed": func(e *Evpath, _ func()) { e.Close(errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			e, sent := newPlane(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := read(ctx, e, 0, ModeRequest, piece(0, 0, 8), piece(1, 0, 8))
			q := next(t, "request", sent)
			next(t, "request", sent)
			p := e.Place(replyTo(q), head, head+8)
			end(e, func() { cancel(errTest) })
			if err := next(t, "end of Read", done); !errors.Is(err, errTest) {
				t.Error(err)
			}
			if _, ok := p.Bytes(); ok {
				t.Error("the place is still open")
			}
			if e.Place(replyTo(q), head, head+8) != nil {
				t.Error("a place after the end")
			}
			cancel(nil)
		})
	}
}

// wire is a plane that reads over connections, from a writer of one rank whose
// block is that of blockOf.
type wire struct {
	plane *Evpath
	link  carrier.Link // to the writer
}

const wireBlock = 1 << 20

// served is the writer's side.
type served struct{ t *testing.T }

func (s *served) Message(l carrier.Link, in carrier.Inbound) {
	defer in.Free()
	m, err := sstmsg.Decode(in.Format, in.Data)
	if err != nil {
		s.t.Error(err)
		return
	}
	q := m.(*sstmsg.ReadRequest)
	reply := replyTo(sentRequest{msg: q})
	reply.Data = sstmsg.ByteBlob(blockOf(q.Step, 0, int(q.Offset+q.Length))[q.Offset:])
	sendOn(l, reply)
}

func (s *served) Lost(carrier.Link, error) {}

func sendOn(l carrier.Link, m sstmsg.Message) error {
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{})
	if err != nil {
		return err
	}
	return l.Send(carrier.Record{Format: f, Parts: parts})
}

// Message is the reader's side.
func (w *wire) Message(l carrier.Link, in carrier.Inbound) {
	defer in.Free()
	var m sstmsg.Message
	var err error
	if in.Placed == nil {
		m, err = sstmsg.Decode(in.Format, in.Data)
	} else {
		b, _ := in.Placed.Bytes()
		m, err = sstmsg.DecodeSplit(in.Format, in.Data, b)
	}
	if err != nil {
		l.Abort(err)
		return
	}
	w.plane.Reply(m.(*sstmsg.ReadReply), in.Placed)
}

func (w *wire) Lost(_ carrier.Link, err error) { w.plane.FailRank(0, err) }

func (w *wire) place(_ carrier.Link, f *ffs.Format, head []byte, total int) *carrier.Placement {
	m, offset, ok := sstmsg.Head(f, head, total)
	if !ok {
		return nil
	}
	return w.plane.Place(m.(*sstmsg.ReadReply), offset, total)
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{}
	local := carrier.Config{ListenAddr: netip.MustParseAddrPort("127.0.0.1:0"), AdvertiseAddr: netip.MustParseAddr("127.0.0.1")}
	open := func(cfg carrier.Config) *carrier.CM {
		c, err := carrier.NewCM(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	theirs, ours := local, local
	theirs.Handler = &served{t}
	ours.Handler, ours.Place = w, w.place
	w.plane = NewEvpath(EvpathConfig{ReaderID: ourID, Send: func(_ context.Context, _ int, m *sstmsg.ReadRequest) error { return sendOn(w.link, m) }})
	w.plane.Attach(writerIDs[:1])
	t.Cleanup(func() { w.plane.Close(errTest) })
	link, err := open(ours).Dial(t.Context(), open(theirs).Contact())
	if err != nil {
		t.Fatal(err)
	}
	w.link = link
	return w
}

// TestNobodyWritesAfterRead cancels reads that the carrier is filling. What comes
// after the return must not show in the caller's memory.
func TestNobodyWritesAfterRead(t *testing.T) {
	rng := testutil.Rand(t)
	w := newWire(t)
	const mark = 0xEE
	complete := 0
	for round := range int64(testutil.Count(t, 50, 5000)) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := piece(0, rng.Uint64N(100), 1+rng.IntN(wireBlock))
		var end sync.WaitGroup
		spin := rng.IntN(40000)
		end.Go(func() {
			for range spin {
				if ctx.Err() != nil {
					break
				}
			}
			cancel(errTest)
		})
		err := w.plane.Step(round, ModeRequest).Read(ctx, []step.Piece{p})
		switch {
		case err == nil:
			complete++
			check(t, round, []step.Piece{p})
		case !errors.Is(err, errTest):
			t.Fatal(err)
		}
		for i := range p.Dst {
			p.Dst[i] = mark
		}
		whole := piece(0, 0, wireBlock) // comes behind what was still to come
		if err := w.plane.Step(round, ModeRequest).Read(t.Context(), []step.Piece{whole}); err != nil {
			t.Fatal(err)
		}
		check(t, round, []step.Piece{whole})
		if slices.ContainsFunc(p.Dst, func(b byte) bool { return b != mark }) {
			t.Fatal("memory was written to after Read had returned")
		}
		end.Wait()
		w.plane.Forget(round)
	}
	t.Logf("%d reads were faster than their cancellation", complete)
}

// TestLinkEndsInPlace loses the connection while it fills.
func TestLinkEndsInPlace(t *testing.T) {
	w := newWire(t)
	var done <-chan error
	for round, coming := int64(0), false; !coming; round++ { // a read can be over before anybody looks
		done = read(t.Context(), w.plane, round, ModeRequest, piece(0, 0, 64<<20))
		coming = w.fills(done)
	}
	w.link.Abort(errTest)
	if err := next(t, "end of Read", done); !errors.Is(err, errTest) && err != nil {
		t.Error(err)
	}
}

// fills waits until an answer is coming in to where it belongs; it is false if the
// read ends first.
func (w *wire) fills(done <-chan error) bool {
	for {
		w.plane.mu.Lock()
		coming := false
		for _, r := range w.plane.pending {
			r.batch.mu.Lock()
			coming = r.place != nil
			r.batch.mu.Unlock()
		}
		w.plane.mu.Unlock()
		if coming {
			return true
		}
		select {
		case <-done:
			return false
		default:
		}
	}
}

// viewAsks views a part of a block that was not pushed.
func viewAsks(t *testing.T, e *Evpath, sent chan sentRequest, number int64, mode int32, rank int) {
	t.Helper()
	type view struct {
		b    []byte
		free func()
		err  error
	}
	done := make(chan view, 1)
	go func() {
		var v view
		v.b, v.free, v.err = e.Step(number, mode).(step.Viewer).View(t.Context(), rank, 4, 8)
		done <- v
	}()
	placed(t, e, next(t, "request", sent))
	v := next(t, "view", done)
	if v.err != nil {
		t.Fatal(v.err)
	}
	check(t, number, []step.Piece{{Rank: rank, Offset: 4, Dst: v.b}})
	v.free()
}

// TestViewAsks brings what was not pushed into memory of its own, which goes back
// once, also if the read fails, and is bounded.
func TestViewAsks(t *testing.T) {
	var m memory
	sent := make(chan sentRequest, 10)
	e := NewEvpath(EvpathConfig{ReaderID: ourID, Send: senderTo(sent), MaxView: 100, Memory: func(n int) ([]byte, func()) {
		return make([]byte, n), m.free()
	}})
	defer e.Close(errTest)
	e.Attach(writerIDs)
	viewAsks(t, e, sent, 0, ModeRequest, 1)
	m.want(t, "after the view", 1)
	v := e.Step(1, ModeRequest).(step.Viewer)
	if _, _, err := v.View(t.Context(), 0, 0, 101); !errors.Is(err, step.ErrNoView) {
		t.Errorf("more than may be: %v", err)
	}
	if _, _, err := v.View(t.Context(), 3, 0, 1); !errors.Is(err, errRank) {
		t.Errorf("no such rank: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	if _, _, err := v.View(ctx, 0, 0, 100); !errors.Is(err, errTest) {
		t.Errorf("cancelled: %v", err)
	}
	m.want(t, "after an error", 2)
}

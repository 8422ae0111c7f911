package dp

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// patience bounds every wait; no test passes by it.
const patience = 20 * time.Second

const ourID = 77

var (
	writerIDs = []int64{100, 101, 102}
	errTest   = errors.New("a reason given by the test")
)

// sentRequest is a request as the sender got it.
type sentRequest struct {
	rank int
	msg  *sstmsg.ReadRequest
}

// newPlane returns a plane that is attached, and what it sends.
func newPlane(t *testing.T) (*Evpath, chan sentRequest) {
	t.Helper()
	sent := make(chan sentRequest, 1024)
	e := NewEvpath(EvpathConfig{ReaderID: ourID, Send: senderTo(sent)})
	e.Attach(writerIDs)
	t.Cleanup(func() { e.Close(errTest) })
	return e, sent
}

func senderTo(sent chan<- sentRequest) Sender {
	return func(_ context.Context, rank int, m *sstmsg.ReadRequest) error {
		sent <- sentRequest{rank, m}
		return nil
	}
}

func next[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came: %s", what)
		panic("unreachable")
	}
}

// read reads in the background.
func read(ctx context.Context, e *Evpath, number int64, mode int32, pieces ...step.Piece) <-chan error {
	done := make(chan error, 1)
	go func() { done <- e.Step(number, mode).Read(ctx, pieces) }()
	return done
}

func piece(rank int, offset uint64, n int) step.Piece {
	return step.Piece{Rank: rank, Offset: offset, Dst: make([]byte, n)}
}

// block is the content of a rank's data block in a step.
func blockOf(number int64, rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(int(number)*31 + rank*7 + i)
	}
	return b
}

// answer replies to a request with what the block has there.
func answer(e *Evpath, q sentRequest) {
	b := blockOf(q.msg.Step, q.rank, int(q.msg.Offset+q.msg.Length))
	e.Reply(&sstmsg.ReadReply{
		Step: q.msg.Step, ReaderID: q.msg.ReaderID, Condition: q.msg.Condition, Data: sstmsg.ByteBlob(b[q.msg.Offset:]),
	}, nil)
}

func check(t *testing.T, number int64, pieces []step.Piece) {
	t.Helper()
	for _, p := range pieces {
		if want := blockOf(number, p.Rank, int(p.Offset)+len(p.Dst))[p.Offset:]; !bytes.Equal(p.Dst, want) {
			t.Errorf("rank %d offset %d: got % x, want % x", p.Rank, p.Offset, p.Dst, want)
		}
	}
}

func pending(e *Evpath) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pending)
}

func TestRequests(t *testing.T) {
	e, sent := newPlane(t)
	pieces := []step.Piece{piece(0, 8, 16), piece(1, 0, 3), piece(2, 100, 1)}
	done := read(t.Context(), e, 5, ModeRequest, pieces...)
	for _, p := range pieces {
		q := next(t, "request", sent)
		m := q.msg
		if q.rank != p.Rank || m.Step != 5 || m.Offset != int64(p.Offset) || m.Length != int64(len(p.Dst)) ||
			m.WriterID != writerIDs[p.Rank] || m.ReaderID != ourID || m.Rank != 0 || m.Condition <= 0 {
			t.Errorf("rank %d: %+v", q.rank, m)
		}
		answer(e, q)
	}
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 5, pieces)
	if n := pending(e); n != 0 {
		t.Errorf("%d requests are still pending", n)
	}
}

// TestRepliesInAnyOrder runs many reads whose answers come shuffled, some in
// several pieces of memory, with answers to nothing between them.
func TestRepliesInAnyOrder(t *testing.T) {
	rng := testutil.Rand(t)
	e, sent := newPlane(t)
	const reads, each = 40, 5
	var all [][]step.Piece
	var done []<-chan error
	for i := range reads {
		var pieces []step.Piece
		for range each {
			pieces = append(pieces, piece(rng.IntN(3), rng.Uint64N(50), 1+rng.IntN(40)))
		}
		all = append(all, pieces)
		done = append(done, read(t.Context(), e, int64(i), ModeRequest, pieces...))
	}
	var queue []sentRequest
	for range reads * each {
		queue = append(queue, next(t, "request", sent))
	}
	rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	for _, q := range queue {
		e.Reply(&sstmsg.ReadReply{Condition: 1 << 30, Data: sstmsg.ByteBlob([]byte("nobody asked"))}, nil)
		b := blockOf(q.msg.Step, q.rank, int(q.msg.Offset+q.msg.Length))[q.msg.Offset:]
		cut := rng.IntN(len(b) + 1)
		reply := &sstmsg.ReadReply{Step: q.msg.Step, Condition: q.msg.Condition, Data: sstmsg.Blob{b[:cut], b[cut:]}}
		e.Reply(reply, nil)
		e.Reply(reply, nil) // a repeat is an answer to nothing
	}
	for i := range done {
		if err := next(t, "end of Read", done[i]); err != nil {
			t.Fatal(err)
		}
		check(t, int64(i), all[i])
	}
}

func TestReplyOfWrongLength(t *testing.T) {
	for _, n := range []int{0, 7, 9} {
		e, sent := newPlane(t)
		p := piece(1, 0, 8)
		done := read(t.Context(), e, 0, ModeRequest, p, piece(0, 0, 8))
		q := next(t, "request", sent)
		e.Reply(&sstmsg.ReadReply{Condition: q.msg.Condition, Data: sstmsg.ByteBlob(bytes.Repeat([]byte{1}, n))}, nil)
		want := errReply
		if n == 0 {
			want = errEmpty
		}
		if err := next(t, "end of Read", done); !errors.Is(err, want) {
			t.Errorf("%d bytes for 8: %v", n, err)
		}
		if !bytes.Equal(p.Dst, make([]byte, 8)) {
			t.Errorf("%d bytes for 8: something was written: % x", n, p.Dst)
		}
		if n := pending(e); n != 0 {
			t.Errorf("%d requests are still pending", n)
		}
	}
}

func TestRankThatIsNot(t *testing.T) {
	e, sent := newPlane(t)
	for _, mode := range []int32{ModeRequest, ModeSpeculative, ModeLearned} {
		for _, rank := range []int{-1, 3, 1 << 40} {
			if err := e.Step(0, mode).Read(t.Context(), []step.Piece{piece(0, 0, 1), piece(rank, 0, 1)}); !errors.Is(err, errRank) {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
	}
	if len(sent) != 0 {
		t.Error("something was sent")
	}
}

func TestSendFails(t *testing.T) {
	n := 0
	e := NewEvpath(EvpathConfig{Send: func(context.Context, int, *sstmsg.ReadRequest) error {
		if n++; n == 3 {
			return errTest
		}
		return nil
	}})
	e.Attach(writerIDs)
	err := e.Step(0, ModeRequest).Read(t.Context(), []step.Piece{piece(0, 0, 1), piece(0, 1, 1), piece(1, 0, 1), piece(2, 0, 1)})
	if !errors.Is(err, errTest) || n != 3 {
		t.Errorf("after %d sends: %v", n, err)
	}
	if n := pending(e); n != 0 {
		t.Errorf("%d requests are still pending", n)
	}
}

// TestNoWriteAfterReturn cancels reads while answers come in. Under -race any
// write behind the return is a report; without, the mark shows it.
func TestNoWriteAfterReturn(t *testing.T) {
	e, sent := newPlane(t)
	const rounds, mark = 300, 0xEE
	var replies sync.WaitGroup
	for round := range rounds {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := piece(0, 0, 1<<12)
		done := read(ctx, e, int64(round), ModeRequest, p)
		q := next(t, "request", sent)
		replies.Go(func() { answer(e, q) })
		replies.Go(func() { cancel(errTest) })
		err := next(t, "end of Read", done)
		for i := range p.Dst {
			p.Dst[i] = mark
		}
		replies.Wait()
		if err != nil && !errors.Is(err, errTest) {
			t.Fatal(err)
		}
		if slices.ContainsFunc(p.Dst, func(b byte) bool { return b != mark }) {
			t.Fatal("memory was written to after Read had returned")
		}
		cancel(nil)
	}
	if n := pending(e); n != 0 {
		t.Errorf("%d requests are still pending", n)
	}
}

func TestFailRank(t *testing.T) {
	e, sent := newPlane(t)
	bad := read(t.Context(), e, 0, ModeRequest, piece(1, 0, 4))
	q := next(t, "request", sent)
	good := read(t.Context(), e, 0, ModeRequest, piece(2, 0, 4))
	other := next(t, "request", sent)
	e.FailRank(1, errTest)
	if err := next(t, "end of Read", bad); !errors.Is(err, errTest) {
		t.Error(err)
	}
	answer(e, q) // too late, and no harm
	answer(e, other)
	if err := next(t, "end of Read", good); err != nil {
		t.Error(err)
	}
	again := read(t.Context(), e, 0, ModeRequest, piece(1, 0, 4))
	answer(e, next(t, "request", sent))
	if err := next(t, "end of Read", again); err != nil {
		t.Errorf("a later read of the rank: %v", err)
	}
}

func TestFail(t *testing.T) {
	e, sent := newPlane(t)
	requested := read(t.Context(), e, 0, ModeRequest, piece(1, 0, 4))
	next(t, "request", sent)
	awaited := read(t.Context(), e, 1, ModeSpeculative, piece(1, 0, 4))
	waiting(t, e, block{1, 1})
	m := memory{}
	push(e, 1, 0, blockOf(1, 0, 16), m.free())
	e.Fail(errTest)
	e.Fail(errors.New("another reason comes too late"))
	for _, done := range []<-chan error{requested, awaited, read(t.Context(), e, 2, ModeRequest, piece(0, 0, 1)), read(t.Context(), e, 2, ModeSpeculative, piece(0, 0, 1))} {
		if err := next(t, "end of Read", done); !errors.Is(err, errTest) {
			t.Error(err)
		}
	}
	p := piece(0, 4, 4)
	if err := e.Step(1, ModeSpeculative).Read(t.Context(), []step.Piece{p}); err != nil {
		t.Errorf("a block that is here: %v", err)
	}
	check(t, 1, []step.Piece{p})
	late := memory{}
	push(e, 1, 1, blockOf(1, 1, 16), late.free())
	late.want(t, "pushed after the failure", 1)
	m.want(t, "before the end of its step", 0)
	e.Forget(1)
	m.want(t, "after the end of its step", 1)
}

// memory counts how often a block was given back.
type memory struct{ n atomic.Int32 }

func (m *memory) free() func() { return func() { m.n.Add(1) } }

func (m *memory) want(t *testing.T, what string, n int32) {
	t.Helper()
	if got := m.n.Load(); got != n {
		t.Errorf("%s: memory was given back %d times, want %d", what, got, n)
	}
}

func push(e *Evpath, number int64, rank int, data []byte, free func()) {
	e.Push(&sstmsg.Preload{Step: number, WriterRank: int64(rank), ReaderID: ourID, Data: sstmsg.ByteBlob(data)}, free)
}

// waiting returns once somebody waits for the block.
func waiting(t *testing.T, e *Evpath, b block) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		e.mu.Lock()
		_, there := e.preloads[b]
		e.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
}

func TestPreload(t *testing.T) {
	e, _ := newPlane(t)
	var before, after, twice memory
	push(e, 0, 0, blockOf(0, 0, 32), before.free())
	pieces := []step.Piece{piece(0, 4, 8), piece(1, 0, 32), piece(1, 32, 0), piece(0, 0, 32)}
	done := read(t.Context(), e, 0, ModeSpeculative, pieces...)
	waiting(t, e, block{0, 1})
	push(e, 0, 1, blockOf(0, 1, 32), after.free())
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 0, pieces)
	push(e, 0, 1, []byte("a repeat, as learned mode brings it"), twice.free())
	twice.want(t, "a repeat", 1)
	if err := e.Step(0, ModeSpeculative).Read(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	check(t, 0, pieces)
	before.want(t, "during the step", 0)
	e.Forget(0)
	before.want(t, "after the step", 1)
	after.want(t, "after the step", 1)
	var late memory
	push(e, 0, 2, blockOf(0, 2, 8), late.free())
	late.want(t, "pushed after its step", 1)
}

func TestPreloadTooShort(t *testing.T) {
	e, _ := newPlane(t)
	push(e, 0, 0, make([]byte, 8), func() {})
	for _, p := range []step.Piece{piece(0, 0, 9), piece(0, 8, 1), piece(0, 1<<63, 1), piece(0, 1<<64-1, 8)} {
		if err := e.Step(0, ModeSpeculative).Read(t.Context(), []step.Piece{p}); !errors.Is(err, errPush) {
			t.Errorf("bytes %d+%d of 8: %v", p.Offset, len(p.Dst), err)
		}
	}
}

func TestPreloadThatNeverComes(t *testing.T) {
	e, _ := newPlane(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := read(ctx, e, 0, ModeSpeculative, piece(0, 0, 1))
	waiting(t, e, block{0, 0})
	cancel(errTest)
	if err := next(t, "end of Read", done); !errors.Is(err, errTest) {
		t.Error(err)
	}
	var m memory
	push(e, 0, 0, []byte{1}, m.free()) // it is kept for the next read of the step
	m.want(t, "the step goes on", 0)
	e.Forget(0)
	m.want(t, "the step is over", 1)
}

// TestForgetWakes ends a step that somebody waits in.
func TestForgetWakes(t *testing.T) {
	e, _ := newPlane(t)
	done := read(t.Context(), e, 3, ModeSpeculative, piece(0, 0, 1))
	waiting(t, e, block{3, 0})
	e.Forget(3)
	if err := next(t, "end of Read", done); !errors.Is(err, errOver) {
		t.Error(err)
	}
	if err := next(t, "end of Read", read(t.Context(), e, 3, ModeSpeculative, piece(0, 0, 1))); !errors.Is(err, errOver) {
		t.Errorf("a read of a step that is over: %v", err)
	}
}

func TestPushOfNoRank(t *testing.T) {
	e, _ := newPlane(t)
	for _, rank := range []int64{-1, 3, 1 << 40, -1 << 63} {
		var m memory
		e.Push(&sstmsg.Preload{WriterRank: rank, Data: sstmsg.ByteBlob([]byte{1})}, m.free())
		m.want(t, "no such rank", 1)
	}
}

// TestPushBeforeAttach keeps what a writer on another link pushes early.
func TestPushBeforeAttach(t *testing.T) {
	e := NewEvpath(EvpathConfig{})
	defer e.Close(errTest)
	var good, bad memory
	push(e, 0, 1, blockOf(0, 1, 8), good.free())
	push(e, 0, 2, blockOf(0, 2, 8), bad.free())
	e.Attach(writerIDs[:2])
	bad.want(t, "a rank that there is not", 1)
	p := piece(1, 0, 8)
	if err := e.Step(0, ModeSpeculative).Read(t.Context(), []step.Piece{p}); err != nil {
		t.Fatal(err)
	}
	check(t, 0, []step.Piece{p})
	good.want(t, "in use", 0)
}

func TestCloseWithWaiters(t *testing.T) {
	e, sent := newPlane(t)
	var kept, used memory
	push(e, 0, 0, []byte{1}, kept.free())
	push(e, 9, 0, []byte{1}, used.free())
	done := []<-chan error{
		read(t.Context(), e, 0, ModeRequest, piece(0, 0, 1)),
		read(t.Context(), e, 1, ModeSpeculative, piece(0, 0, 1)),
		read(t.Context(), e, 2, ModeSpeculative, piece(2, 0, 1)),
	}
	next(t, "request", sent)
	waiting(t, e, block{1, 0})
	waiting(t, e, block{2, 2})
	e.Close(errTest)
	e.Close(errTest)
	for _, d := range done {
		if err := next(t, "end of Read", d); !errors.Is(err, errTest) {
			t.Error(err)
		}
	}
	kept.want(t, "after Close", 1)
	used.want(t, "after Close", 1)
	if len(e.preloads) != 0 || pending(e) != 0 {
		t.Errorf("%d blocks and %d requests are left", len(e.preloads), pending(e))
	}
}

// TestPreloadMemoryInUse gives memory back only after the last reader of it.
func TestPreloadMemoryInUse(t *testing.T) {
	rng := testutil.Rand(t)
	e, _ := newPlane(t)
	for number := range int64(200) {
		var m memory
		data := blockOf(number, 0, 4096)
		ready := make(chan struct{})
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				<-ready
				p := piece(0, 0, len(data))
				err := e.Step(number, ModeSpeculative).Read(t.Context(), []step.Piece{p})
				switch {
				case err == nil:
					check(t, number, []step.Piece{p})
				case !errors.Is(err, errOver):
					t.Error(err)
				}
			})
		}
		free := func() {
			clear(data) // what the next record does to the memory
			m.n.Add(1)
		}
		first := rng.IntN(2) == 0
		if first {
			push(e, number, 0, data, free)
		}
		close(ready)
		if !first {
			push(e, number, 0, data, free)
		}
		e.Forget(number)
		readers.Wait()
		m.want(t, "after the step", 1)
	}
}

// TestConditionsWrap reuses no number that is outstanding, and stays positive.
func TestConditionsWrap(t *testing.T) {
	e, sent := newPlane(t)
	e.next = 1<<31 - 2
	first := read(t.Context(), e, 0, ModeRequest, piece(0, 0, 1))
	a := next(t, "request", sent)
	e.mu.Lock()
	e.next = a.msg.Condition - 1
	e.mu.Unlock()
	second := read(t.Context(), e, 0, ModeRequest, piece(0, 0, 1))
	b := next(t, "request", sent)
	if a.msg.Condition != 1<<31-1 || b.msg.Condition != 1 {
		t.Errorf("conditions %d and %d", a.msg.Condition, b.msg.Condition)
	}
	answer(e, b)
	answer(e, a)
	for _, d := range []<-chan error{first, second} {
		if err := next(t, "end of Read", d); err != nil {
			t.Error(err)
		}
	}
}

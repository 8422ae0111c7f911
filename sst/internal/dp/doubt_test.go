package dp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// watched is a plane whose writer ranks are looked after by the test.
type watched struct {
	*Evpath
	asked chan int   // ranks that are looked after
	gone  chan error // what became of them
	ended chan int   // ranks that nobody looks after any more
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{asked: make(chan int, 16), gone: make(chan error, 16), ended: make(chan int, 16)}
	w.Evpath = NewEvpath(EvpathConfig{
		Lost: errLost, Grace: time.Millisecond, Doubt: time.Millisecond,
		Send: func(context.Context, int, *sstmsg.ReadRequest) error { return &UnreachableError{errTest} },
		Watch: func(ctx context.Context, rank int) error {
			w.asked <- rank
			defer func() { w.ended <- rank }()
			select {
			case err := <-w.gone:
				return err
			case <-ctx.Done():
				return nil
			}
		},
	})
	w.Attach(writerIDs)
	t.Cleanup(func() { w.Close(errTest) })
	return w
}

func (w *watched) push(number int64, rank int) {
	b := blockOf(number, rank, 8)
	_ = w.Push(&sstmsg.Preload{Step: number, WriterRank: int64(rank), Data: sstmsg.ByteBlob(b)}, func() {})
}

// TestPusherDies: a read that waits for a block that is pushed ends when the rank
// that should push it is gone, and says which one it is; others are not harmed.
func TestPusherDies(t *testing.T) {
	for _, mode := range []int32{ModeSpeculative, ModeLearned} {
		w := newWatched(t)
		if mode == ModeLearned { // rank 1 has been asked once, so it pushes from the next step on
			w.Saw(6, mode)
			w.learn(6, []step.Piece{piece(1, 0, 8)})
			w.Forget(6)
		}
		dead := read(t.Context(), w.Evpath, 7, mode, piece(1, 0, 8))
		if rank := next(t, "question", w.asked); rank != 1 {
			t.Errorf("rank %d is looked after", rank)
		}
		w.gone <- errTest
		err := next(t, "end of Read", dead)
		if !errors.Is(err, errTest) || !errors.Is(err, errLost) || !strings.Contains(err.Error(), "writer rank 1") {
			t.Errorf("mode %d: %v", mode, err)
		}
		next(t, "end of the watch", w.ended)
		if mode == ModeSpeculative {
			alive := read(t.Context(), w.Evpath, 7, mode, piece(2, 0, 8))
			next(t, "question", w.asked)
			w.push(7, 2)
			if err := next(t, "end of Read", alive); err != nil {
				t.Error(err)
			}
			next(t, "end of the watch", w.ended)
		}
	}
}

// TestPusherOfAView is the same for a view.
func TestPusherOfAView(t *testing.T) {
	w := newWatched(t)
	done := make(chan error, 1)
	go func() {
		_, _, err := w.Step(7, ModeSpeculative).(step.Viewer).View(t.Context(), 1, 0, 8)
		done <- err
	}()
	next(t, "question", w.asked)
	w.gone <- errTest
	if err := next(t, "end of View", done); !errors.Is(err, errTest) || !errors.Is(err, errLost) {
		t.Error(err)
	}
}

// TestLastBlockBeforeTheEnd: what came before the rank was gone is read.
func TestLastBlockBeforeTheEnd(t *testing.T) {
	w := newWatched(t)
	for n := range int64(20) {
		done := read(t.Context(), w.Evpath, n, ModeSpeculative, piece(1, 0, 8))
		next(t, "question", w.asked)
		w.push(n, 1)
		w.gone <- errTest
		if err := next(t, "end of Read", done); err != nil {
			t.Fatal(err)
		}
		next(t, "end of the watch", w.ended)
		select {
		case <-w.gone: // nobody took it
		default:
		}
	}
}

// TestWatchIsCancelled: the caller's context, and the end of the plane, end it.
func TestWatchIsCancelled(t *testing.T) {
	w := newWatched(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no patience")
	done := read(ctx, w.Evpath, 7, ModeSpeculative, piece(1, 0, 8))
	next(t, "question", w.asked)
	cancel(reason)
	if err := next(t, "end of Read", done); !errors.Is(err, reason) {
		t.Error(err)
	}
	next(t, "end of the watch", w.ended)
	done = read(t.Context(), w.Evpath, 7, ModeSpeculative, piece(1, 0, 8))
	next(t, "question", w.asked)
	w.Fail(errTest)
	if err := next(t, "end of Read", done); !errors.Is(err, errTest) || errors.Is(err, errLost) {
		t.Error(err)
	}
	next(t, "end of the watch", w.ended)
}

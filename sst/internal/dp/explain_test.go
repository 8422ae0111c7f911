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

var errLost = errors.New("what it means if nobody says why")

// doubtful returns a plane whose writer rank 1 cannot be reached.
func doubtful(t *testing.T, grace time.Duration) (*Evpath, chan sentRequest) {
	t.Helper()
	sent := make(chan sentRequest, 16)
	e := NewEvpath(EvpathConfig{Lost: errLost, Grace: grace, Send: func(ctx context.Context, rank int, m *sstmsg.ReadRequest) error {
		err := senderTo(sent)(ctx, rank, m)
		if rank == 1 {
			return &UnreachableError{errTest}
		}
		return err
	}})
	e.Attach(writerIDs)
	t.Cleanup(func() { e.Close(errTest) })
	return e, sent
}

// meets are the ways in which a read finds a writer rank gone.
var meets = map[string]struct {
	rank  int
	cause error
	meet  func(e *Evpath, q sentRequest)
}{
	"the connection cannot be made": {1, errTest, func(*Evpath, sentRequest) {}},
	"the connection breaks":         {0, errTest, func(e *Evpath, _ sentRequest) { e.FailRank(0, errTest) }},
	"the writer refuses":            {2, errEmpty, func(e *Evpath, q sentRequest) { e.Reply(&sstmsg.ReadReply{Condition: q.msg.Condition}, nil) }},
}

// TestReasonComes waits for why the whole plane fails.
func TestReasonComes(t *testing.T) {
	reason := errors.New("a rank has died")
	for name, c := range meets {
		t.Run(name, func(t *testing.T) {
			e, sent := doubtful(t, patience)
			done := read(t.Context(), e, 3, ModeRequest, piece(c.rank, 0, 4))
			c.meet(e, next(t, "request", sent)) // it has begun
			select {
			case err := <-done:
				t.Fatalf("did not wait: %v", err)
			case <-time.After(time.Millisecond): // a moment in which it could happen
			}
			e.Fail(reason)
			err := next(t, "end of Read", done)
			if !errors.Is(err, reason) || !errors.Is(err, c.cause) || errors.Is(err, errLost) {
				t.Error(err)
			}
			if !strings.Contains(err.Error(), "step 3") || !strings.Contains(err.Error(), "writer rank") {
				t.Errorf("%v does not say where", err)
			}
		})
	}
}

// TestReasonDoesNotCome gives up, and does not wait a second time.
func TestReasonDoesNotCome(t *testing.T) {
	for name, c := range meets {
		t.Run(name, func(t *testing.T) {
			e, sent := doubtful(t, time.Millisecond)
			for range 2 {
				done := read(t.Context(), e, 3, ModeRequest, piece(c.rank, 0, 4))
				c.meet(e, next(t, "request", sent))
				if err := next(t, "end of Read", done); !errors.Is(err, errLost) || !errors.Is(err, c.cause) {
					t.Error(err)
				}
				e.cfg.Grace = time.Hour
			}
		})
	}
}

// TestReasonNotWaitedFor ends the wait with the context.
func TestReasonNotWaitedFor(t *testing.T) {
	e, _ := doubtful(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := read(ctx, e, 3, ModeRequest, piece(1, 0, 4))
	cancel()
	if err := next(t, "end of Read", done); !errors.Is(err, errLost) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := e.Step(4, ModeRequest).Read(ctx, []step.Piece{piece(1, 0, 4)}); err == nil {
		t.Error("no error")
	}
}

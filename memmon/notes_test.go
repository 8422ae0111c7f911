package memmon

import (
	"context"
	"log/slog"
	"testing"
)

// calling is a log handler that calls back.
type calling struct {
	slog.Handler
	call func()
}

func (h calling) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

func (calling) Enabled(context.Context, slog.Level) bool { return true }

// TestLogCallsBack has the log attach a cache itself, as one does that is sent over a fabric.
func TestLogCallsBack(t *testing.T) {
	a := testArbiter(t)
	if err := a.Import(&stubborn{newFake()}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	log := slog.New(calling{slog.DiscardHandler, func() {
		calls++
		a.Attach(ignore, nil)()
	}})
	a.Attach(ignore, log)() // it says that the monitor serves, and then that it did not stop well
	if calls < 2 {
		t.Errorf("%d calls", calls)
	}
}

// stubborn does not stop well.
type stubborn struct{ *fake }

func (*stubborn) Stop() error { return errFake }

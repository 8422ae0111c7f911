package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// team is the processes that do one command together: those of a launcher, or
// just this one. They agree on a plan when they begin, and on a verdict when
// they end, so that all have the same exit code and an error is said once, by
// rank 0, with the rank that it comes from.
//
// A rank ends in one of two ways. After an orderly one, with or without an error
// of its own, it waits for the others (end). In a hurry, because it could not
// begin or was interrupted, it has all others stopped (stop). Whoever dies
// stops the others too.
type team struct {
	rank, size int
	cohort     cohort.Cohort
	channel    cohort.Channel
	cancel     context.CancelCauseFunc // ends the context of this rank's work
	stderr     io.Writer

	mu      sync.Mutex
	plan    *plan
	ends    []*ending // rank 0 only: how each rank has ended
	verdict *ending   // how all have
	lost    bool      // rank 0 is gone: there will be no verdict
	changed chan struct{}
}

// plan is what rank 0 tells the others before they begin.
type plan struct {
	Ranks int // writer ranks of the source
	Steps int // to send; -1: until the source ends
}

// ending is how a rank has ended, or all of them. The zero value: well.
type ending struct {
	Rank   int
	Code   int    // exit code
	Text   string // the error; "" if there is none, or stderr has been told
	Follow bool   // the error only follows from one of another rank
}

func (e *ending) well() bool { return e.Code == exitOK && e.Text == "" }

// note is a message between ranks. Exactly one field is set.
type note struct {
	Plan *plan   `json:",omitempty"` // from rank 0
	End  *ending `json:",omitempty"` // to rank 0: the rank is done
	Stop *ending `json:",omitempty"` // to rank 0: all others have to stop
	All  *ending `json:",omitempty"` // from rank 0: the verdict
}

// teamGrace is how long a rank in a hurry waits for the others to hear of it.
const teamGrace = 5 * time.Second

// newTeam forms a team of the ranks of a cohort. The context is for this rank's
// work; it ends with ctx, and when the team is stopped.
func newTeam(ctx context.Context, c cohort.Cohort, stderr io.Writer) (context.Context, *team, error) {
	work, cancel := context.WithCancelCause(ctx)
	t := &team{cohort: c, stderr: stderr, size: 1, cancel: cancel, changed: make(chan struct{})}
	if c == nil || c.Size() == 1 {
		return work, t, nil
	}
	t.rank, t.size = c.Rank(), c.Size()
	t.ends = make([]*ending, t.size)
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	t.channel, err = c.Join("weft command", (*teamHandler)(t))
	if err != nil {
		cancel(err)
		return ctx, nil, err
	}
	return work, t, nil
}

// alone reports whether there is nobody else.
func (t *team) alone() bool { return t.size == 1 }

// leads reports whether this rank speaks for all.
func (t *team) leads() bool { return t.rank == 0 }

// streams returns the cohort for streams, nil if this is the only process.
func (t *team) streams() cohort.Cohort {
	if t.alone() {
		return nil
	}
	return t.cohort
}

// agree makes rank 0's plan that of all: it returns it.
func (t *team) agree(ctx context.Context, mine plan) (plan, error) {
	if t.leads() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tellAll(note{Plan: &mine})
		return mine, nil
	}
	err := t.await(ctx, 0, func() bool { return t.plan != nil || t.verdict != nil || t.lost })
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.plan == nil {
		if err == nil {
			err = errTeam
		}
		return plan{}, err
	}
	return *t.plan, nil
}

// errTeam says that another rank has stopped this one.
var errTeam = errors.New("another rank has failed")

// rankError is an error of a rank of the team.
type rankError struct {
	rank, code int
	text       string
}

func (e *rankError) Error() string { return fmt.Sprintf("rank %d: %s", e.rank, e.text) }

// exitCode is that of every rank.
func (e *rankError) exitCode() int { return e.code }

// end waits until every rank has ended and returns the error of this rank's
// process, which has been told unless it is alone. An error of a rank that was in
// a hurry, or if the context has ended, stops all.
func (t *team) end(ctx context.Context, err error, hurry bool) error {
	if t.alone() {
		t.cancel(nil)
		if t.cohort != nil {
			err = errors.Join(err, t.cohort.Close())
		}
		return err
	}
	defer t.cancel(nil)
	mine := t.endingOf(err)
	hurry = mine.Code != exitOK && (hurry || ctx.Err() != nil)
	if hurry && mine.Follow { // let the other one speak first
		_ = t.await(ctx, teamGrace, t.over)
	}
	t.mu.Lock()
	switch {
	case t.leads() && hurry:
		t.decide(mine)
	case t.leads():
		t.ended(mine)
	case hurry:
		t.tellRoot(note{Stop: mine})
	default:
		t.tellRoot(note{End: mine})
	}
	t.mu.Unlock()
	limit := time.Duration(0)
	if hurry {
		limit = teamGrace
	}
	_ = t.await(ctx, limit, t.over)
	t.mu.Lock()
	verdict := t.verdict
	t.mu.Unlock()
	leaveErr := errors.Join(t.channel.Close(), t.cohort.Close())
	switch {
	case verdict == nil:
		return t.withoutRoot(ctx, mine)
	case verdict.well():
		return leaveErr
	}
	return toldError{verdict.Code}
}

// withoutRoot is the error of a rank to which rank 0 has not told how all have
// ended. If it is gone, the next one says so, for all others.
func (t *team) withoutRoot(ctx context.Context, mine *ending) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lost && t.rank == 1:
		return &rankError{code: exitFailed, text: "is gone"}
	case t.lost:
		return toldError{exitFailed}
	case mine.well():
		mine.Text = message(cmp.Or(context.Cause(ctx), errTeam))
	}
	return &rankError{rank: t.rank, code: max(mine.Code, exitFailed), text: mine.Text}
}

// over reports whether nothing can be added any more. The caller holds mu.
func (t *team) over() bool { return t.verdict != nil || t.lost }

// toldError is an error that stderr has been told of, here or by another rank.
type toldError struct{ code int }

func (toldError) Error() string { return errReported.Error() }
func (toldError) Unwrap() error { return errReported }

// exitCode is that of the team.
func (e toldError) exitCode() int { return e.code }

// endingOf describes how this rank has ended.
func (t *team) endingOf(err error) *ending {
	e := &ending{Rank: t.rank, Code: codeOf(err)}
	if err == nil || errors.Is(err, errReported) {
		return e
	}
	e.Text, e.Follow = message(err), t.follows(err)
	return e
}

// follows reports whether an error only follows from what another rank met.
func (t *team) follows(err error) bool {
	if rank, ok := sst.ErrorRank(err); ok && rank != t.rank {
		return true
	}
	for _, known := range []error{errTeam, sst.ErrRankFailed, sst.ErrStepAborted, cohort.ErrRankGone} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// ended notes how a rank has ended, at rank 0; the last one brings the verdict.
// The caller holds mu.
func (t *team) ended(e *ending) {
	if e.Rank < 0 || e.Rank >= t.size {
		return
	}
	t.ends[e.Rank] = e
	worst := &ending{}
	for _, e := range t.ends {
		switch {
		case e == nil:
			return
		case worst.well(), worst.Text == "" && e.Text != "", worst.Follow && !e.Follow && e.Text != "":
			worst = e
		}
	}
	t.decide(worst)
}

// decide makes the verdict known, at rank 0. Only the first counts. The caller
// holds mu.
func (t *team) decide(e *ending) {
	if t.verdict != nil {
		return
	}
	t.verdict = e
	if e.Text != "" { // before any rank exits: launchers kill the others then
		fmt.Fprintf(t.stderr, "weft: %v\n", &rankError{rank: e.Rank, text: e.Text})
	}
	t.tellAll(note{All: e})
	t.notify()
	if !e.well() {
		t.cancel(errTeam)
	}
}

// tellAll sends a note to every other rank. The caller holds mu.
func (t *team) tellAll(n note) {
	for rank := 1; rank < t.size; rank++ {
		t.tell(rank, n)
	}
}

func (t *team) tellRoot(n note) { t.tell(0, n) }

// tell sends a note. That a rank is gone is no error here: Lost tells, after the
// last note of that rank, which may be the verdict.
func (t *team) tell(rank int, n note) {
	if b, err := json.Marshal(n); err == nil { // it always is
		_ = t.channel.Send(rank, b)
	}
}

// await waits for a condition, which is asked with mu held; for limit at most if
// that is not 0. Without a limit the end of ctx begins one.
func (t *team) await(ctx context.Context, limit time.Duration, ok func() bool) error {
	var over <-chan time.Time
	done := ctx.Done()
	if limit > 0 {
		over, done = time.After(limit), nil
	}
	for {
		t.mu.Lock()
		changed, now := t.changed, ok()
		t.mu.Unlock()
		if now {
			return nil
		}
		select {
		case <-changed:
		case <-done:
			over, done = time.After(teamGrace), nil
		case <-over:
			return context.Cause(ctx)
		}
	}
}

// notify wakes who awaits. The caller holds mu.
func (t *team) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// teamHandler is the team as its cohort sees it.
type teamHandler team

// Message takes a note in. What cannot be read is of a rank that runs another
// program; that the streams do not work then is told by them.
func (h *teamHandler) Message(from int, msg []byte) {
	t := (*team)(h)
	var n note
	if json.Unmarshal(msg, &n) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case n.Plan != nil && from == 0:
		t.plan = n.Plan
	case n.All != nil && from == 0 && t.verdict == nil:
		t.verdict = n.All
		if !n.All.well() {
			t.cancel(errTeam)
		}
	case n.End != nil && t.leads():
		n.End.Rank = from
		t.ended(n.End)
	case n.Stop != nil && t.leads():
		n.Stop.Rank = from
		t.decide(n.Stop)
	}
	t.notify()
}

// Lost stops all: the streams have lost the rank as well.
func (h *teamHandler) Lost(rank int, err error) {
	t := (*team)(h)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.verdict != nil:
	case t.leads() && t.ends[rank] == nil:
		t.decide(&ending{Rank: rank, Code: exitFailed, Text: "is gone: " + strings.TrimPrefix(message(err), cohort.ErrRankGone.Error()+": ")})
	case rank == 0:
		t.lost = true
		t.cancel(errTeam)
		t.notify()
	}
}

// share is the source ranks that one of n ranks stands for: from lo up to hi.
type share struct{ lo, hi int }

// shareOf divides ranks among a team. The target has those of the source, no more,
// or local values would be others: if there are fewer than processes, the last
// processes have none.
func (t *team) shareOf(ranks int) share {
	workers := min(t.size, ranks)
	if t.rank >= workers {
		return share{ranks, ranks}
	}
	return share{t.rank * ranks / workers, (t.rank + 1) * ranks / workers}
}

// count is the number of ranks.
func (s share) count() int { return s.hi - s.lo }

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// pairRole is one of two processes that open many streams to each other, both
// ways (field report F05).
const pairRole = "pair"

// pairJob is what it is told.
type pairJob struct {
	Dir     string
	Side    int // 0 or 1: 0 opens its writers first, 1 its readers
	Streams int // of each direction
	Steps   int
	Rounds  int
}

// pairSteps are the steps of a stream in F05.
const pairSteps = 4

// runPairRole plays all rounds over one session. In each it waits for a line, says
// "OPEN n" when every stream is up, waits for another line, and says "ROUND n"
// when all is over.
func runPairRole(args []string) error {
	var job pairJob
	if err := json.Unmarshal([]byte(args[0]), &job); err != nil {
		return err
	}
	before := takeCounts()
	if err := job.run(context.Background()); err != nil {
		say("FAILED", describeError(err))
		return err
	}
	if left := before.left(); left != "" {
		return fmt.Errorf("left behind: %s", left)
	}
	return nil
}

func (j pairJob) run(ctx context.Context) error {
	s, err := sst.NewSession(ctx, sst.SessionConfig{NetworkInterface: "lo"})
	if err != nil {
		return err
	}
	defer s.Close()
	in := bufio.NewScanner(os.Stdin)
	for round := range j.Rounds {
		if !in.Scan() {
			return errNoWord
		}
		if err := j.round(ctx, s, round, in); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		say("ROUND", round)
	}
	return s.Close()
}

var errNoWord = errors.New("stdin has ended")

// pairStall is the longest that a round of F05 may take.
const pairStall = 10 * time.Second

// round opens all streams at once, and passes the steps once the test has looked
// at the connections.
func (j pairJob) round(ctx context.Context, s *sst.Session, round int, in *bufio.Scanner) error {
	ctx, cancel := context.WithTimeout(ctx, pairStall)
	defer cancel()
	var opened, over sync.WaitGroup
	pass := make(chan struct{})
	errs := make(chan error, 2*j.Streams)
	opened.Add(2 * j.Streams)
	for k := range j.Streams {
		mine, theirs := j.file(j.Side, k), j.file(1-j.Side, k)
		writer := func() { errs <- pairWrite(ctx, s, mine, round, j.Steps, opened.Done, pass) }
		reader := func() { errs <- pairRead(ctx, s, theirs, round, j.Steps, opened.Done, pass) }
		first, second := writer, reader
		if j.Side == 1 {
			first, second = reader, writer
		}
		over.Go(first)
		over.Go(second)
	}
	opened.Wait()
	say("OPEN", round)
	if !in.Scan() {
		return errNoWord
	}
	close(pass)
	over.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// file is stream k that side writes.
func (j pairJob) file(side, k int) string { return fmt.Sprintf("%s/side%d-%d", j.Dir, side, k) }

// pairWrite writes a stream. opened is called once, whatever happens.
func pairWrite(ctx context.Context, s *sst.Session, name string, round, steps int, opened func(), pass <-chan struct{}) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{Session: s, CloseTimeout: pairStall})
	opened()
	if err != nil {
		return err
	}
	defer w.Close()
	v, err := sst.Define[int64](w, "n", step.GlobalArray(4))
	if err != nil {
		return err
	}
	<-pass
	for n := range int64(steps) {
		st, err := w.BeginStep(ctx)
		if err != nil {
			return err
		}
		box := step.Box{Start: []uint64{0}, Count: []uint64{4}}
		if err := v.Put(st, box, []int64{int64(round), n, n + 1, n + 2}); err != nil {
			return err
		}
		if err := st.End(ctx); err != nil {
			return err
		}
	}
	return w.Close()
}

// pairRead reads a stream and checks it. A name that is used again may still lead
// to the round before: Open waits for the new writer.
func pairRead(ctx context.Context, s *sst.Session, name string, round, steps int, opened func(), pass <-chan struct{}) error {
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s, Params: sst.Params{OpenTimeoutSecs: int(pairStall / time.Second)}})
	opened()
	if err != nil {
		return err
	}
	defer r.Close()
	<-pass
	n := int64(0)
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		got, err := step.Read[int64](ctx, st, "n")
		if err != nil {
			return err
		}
		if len(got) != 4 || got[0] != int64(round) || got[1] != n || int64(st.Number()) != n {
			return fmt.Errorf("%s: step %d has %v in round %d: %w", name, st.Number(), got, round, errMismatch)
		}
		n++
	}
	if n != int64(steps) {
		return fmt.Errorf("%s: %d steps in round %d: %w", name, n, round, errMismatch)
	}
	return r.Close()
}

// startPair starts both processes.
func startPair(t testing.TB, job pairJob) (pair [2]*testutil.Process) {
	t.Helper()
	for side := range pair {
		job.Side = side
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		pair[side] = testutil.Child(t, pairRole, string(text))
	}
	return pair
}

package interop

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// A rank is killed with SIGKILL at a random moment, on either side. What Weft
// does on both is asserted: the right error, within bounds, with nothing left
// behind, or going on. What ADIOS2 does is recorded in a table in the log.

// killCase is who dies, and who is on the other side.
type killCase struct {
	writer bool // a writer rank dies
	first  bool // it is rank 0
	victim kind // of its cohort
	other  kind
}

func (k killCase) String() string {
	role, rank := "reader", "another rank"
	if k.writer {
		role = "writer"
	}
	if k.first {
		rank = "rank 0"
	}
	return fmt.Sprintf("%s of a %v %s, other side %v", rank, k.victim, role, k.other)
}

// killRoles are four roles, and for each the software of both sides: one of them
// is Weft.
func killRoles() (roles [][]killCase) {
	for _, writer := range []bool{true, false} {
		for _, first := range []bool{true, false} {
			ours, theirs := weftKind(3), adios2Kind(2)
			roles = append(roles, []killCase{
				{writer, first, ours, weftKind(2)},
				{writer, first, ours, theirs},
				{writer, first, theirs, ours},
			})
		}
	}
	return roles
}

// bounds of the kill tests.
const (
	// killOpen is OpenTimeoutSecs of readers: one that has not found its writer
	// when that dies goes on looking. killStart is the same where nobody dies while
	// they look.
	killOpen, killStart = 4, 60
	// killBound is when every Weft survivor must have ended, from the kill on.
	killBound = soon
	// recordTime is how long a writer of ADIOS2 is watched whose reader has died.
	recordTime = 2 * time.Second
)

// span is within which time the victim dies: from the first step on, or from when
// its cohort is there.
func (k killCase) span(flowing bool) time.Duration {
	if flowing || k.victim.weft && k.other.weft {
		return 400 * time.Millisecond
	}
	return 1500 * time.Millisecond // programs of ADIOS2 take a second to start
}

// TestSoakKill: so many deaths of each role, the sides by turns; several at a
// time, since most of one is waiting.
func TestSoakKill(t *testing.T) {
	rng := testutil.Rand(t)
	var all killRecord
	t.Cleanup(func() { all.log(t) }) // after the last of them
	for i := range testutil.Count(t, 3, 500) {
		for _, sides := range killRoles() {
			k := sides[i%len(sides)]
			flowing := rng.IntN(2) == 0
			after := time.Duration(rng.Int64N(int64(k.span(flowing))))
			rank := 0
			if !k.first {
				rank = 1 + rng.IntN(k.victim.ranks-1)
			}
			t.Run(fmt.Sprintf("%d/%v, flowing %v, after %v", i, k, flowing, after), func(t *testing.T) {
				t.Parallel()
				all.saw(k, k.play(t, rank, flowing, after))
			})
		}
	}
}

// killRecord counts the deaths of each case, and what sides of ADIOS2 did.
type killRecord struct {
	mu     sync.Mutex
	deaths map[string]int
	adios2 map[string]int
}

func (r *killRecord) saw(k killCase, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaths == nil {
		r.deaths, r.adios2 = map[string]int{}, map[string]int{}
	}
	r.deaths[k.String()]++
	if what != "" {
		r.adios2[fmt.Sprintf("%v: %s", k, what)]++
	}
}

func (r *killRecord) log(t *testing.T) {
	for _, line := range slices.Sorted(maps.Keys(r.deaths)) {
		t.Logf("killed, %s: %d times", line, r.deaths[line])
	}
	for _, line := range slices.Sorted(maps.Keys(r.adios2)) {
		t.Logf("ADIOS2, %s: %d times", line, r.adios2[line])
	}
}

// play runs one round. It returns what a side of ADIOS2 did, or "".
func (k killCase) play(t *testing.T, rank int, flowing bool, after time.Duration) string {
	dir := t.TempDir()
	writer, reader := k.victim, k.other
	if !k.writer {
		writer, reader = reader, writer
	}
	w := startWriter(t, writer, endless(dir))
	limit := killOpen
	if flowing {
		limit = killStart
	}
	o := ReaderOptions{
		Stream:  Stream{Dir: dir, Vars: few, Params: map[string]string{"OpenTimeoutSecs": fmt.Sprint(limit)}},
		Timeout: 2 * killBound,
	}
	if !reader.weft {
		o.Timeout, o.Quiet = killBound, true
	}
	r := startReader(t, reader, writer, o)
	dead, alive := w, r
	if !k.writer {
		dead, alive = r, w
	}
	if p, ok := dead.(*WeftPeer); ok {
		p.Expect("OPENING") // every rank has joined
	}
	switch {
	case flowing && reader.weft:
		r.Expect("STEP")
	case flowing:
		r.Expect("READY") // and is quiet then
	}
	<-time.After(after)
	killSide(t, dead, rank)
	k.wantCohortEnds(t, dead, rank)
	if k.writer {
		return readersSee(t, alive, w)
	}
	return writerGoesOn(t, alive, filepath.Join(dir, "zoo"))
}

// endless is a writer that runs until it is told to leave.
func endless(dir string) WriterOptions {
	return WriterOptions{
		Stream: Stream{Dir: dir, Vars: few, StepDelay: 2 * time.Millisecond, Params: map[string]string{"QueueLimit": "3"}},
		Steps:  1 << 20, Quiet: true,
	}
}

// killSide kills one rank.
func killSide(t *testing.T, s side, rank int) {
	t.Helper()
	switch p := s.(type) {
	case *WeftPeer:
		p.KillRank(rank)
	case *Peer:
		var pids []int
		eventually(t, "it has been started", func() bool {
			pids = mpiRanks(t, p)
			if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.Pid())); strings.HasPrefix(string(comm), "python") {
				pids = []int{p.Pid()} // one rank needs no mpirun
			}
			return len(pids) > rank
		})
		_ = syscall.Kill(pids[rank], syscall.SIGKILL) // it may have ended
	}
}

// wantCohortEnds checks the other ranks of the victim's cohort, if they are
// Weft's: each sees that a rank is gone.
func (k killCase) wantCohortEnds(t *testing.T, s side, victim int) {
	t.Helper()
	p, ok := s.(*WeftPeer)
	if !ok {
		return
	}
	for rank := range p.Ranks {
		if rank == victim {
			continue
		}
		switch e := p.End(rank, killBound+killOpen*time.Second); {
		case e.Late:
			t.Errorf("rank %d still runs %v after rank %d was killed", rank, e.Duration, victim)
		case e.Leak != "":
			t.Errorf("rank %d left behind: %s", rank, e.Leak)
		case !e.Failed("ErrRankFailed", "ErrRankGone"):
			t.Errorf("rank %d ended with status %d and %v: %s; want ErrRankFailed", rank, e.Code, e.Errors, e.Text)
		}
	}
}

// readersSee checks the readers of a writer that is dead.
func readersSee(t *testing.T, s side, w side) string {
	t.Helper()
	p, ok := s.(*WeftPeer)
	if !ok {
		return recordEnd(s.(*Peer))
	}
	for rank := range p.Ranks {
		switch e := p.End(rank, killBound+killOpen*time.Second); {
		case e.Late:
			t.Errorf("reader rank %d still runs %v after a rank of the writer was killed", rank, e.Duration)
		case e.Leak != "":
			t.Errorf("reader rank %d left behind: %s", rank, e.Leak)
		case strings.Contains(p.Ranks[rank].Stdout(), "MISMATCH"):
			t.Errorf("reader rank %d got wrong data", rank)
		case strings.Contains(p.Ranks[rank].Stdout(), "READY"):
			if !e.Failed("ErrWriterFailed") {
				t.Errorf("reader rank %d ended with status %d and %v: %s; want ErrWriterFailed", rank, e.Code, e.Errors, e.Text)
			}
		case !e.Failed("ErrWriterFailed", "ErrTimeout", "ErrStale", "ErrNoStream"):
			t.Errorf("reader rank %d did not open, with status %d and %v: %s", rank, e.Code, e.Errors, e.Text)
		}
	}
	return ""
}

// recordEnd tells what a side of ADIOS2 does when its counterpart is dead.
func recordEnd(p *Peer) string {
	timer := time.NewTimer(2 * killBound)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
		p.Kill()
		return fmt.Sprintf("still running after %v", 2*killBound)
	}
	err := p.Wait()
	out := p.Output()
	for _, told := range []string{"did not find active Writer contact", "Writer failed before returning data", "BeginStep after", "terminate called", "Segmentation fault", "Assertion"} {
		if strings.Contains(out, told) {
			return fmt.Sprintf("exit status %d, says %q", exitCode(err), told)
		}
	}
	return fmt.Sprintf("exit status %d", exitCode(err))
}

// writerGoesOn checks the writer of a reader that is dead: a new reader gets
// steps, and the writer can close.
func writerGoesOn(t *testing.T, s side, name string) string {
	t.Helper()
	p, ok := s.(*WeftPeer)
	if !ok {
		return recordGoingOn(s.(*Peer))
	}
	began := time.Now()
	if err := takeSteps(t, name, len(p.Ranks), 3); err != nil {
		t.Errorf("a new reader of the writer: %v", err)
	}
	if took := time.Since(began); took > 2*killBound {
		t.Errorf("it took a new reader %v to get three steps", took)
	}
	p.Send(wordLeave)
	for rank := range p.Ranks {
		switch e := p.End(rank, killBound); {
		case e.Late:
			t.Errorf("writer rank %d still runs %v after it was told to leave", rank, e.Duration)
		case e.Code != 0:
			t.Errorf("writer rank %d ended with status %d and %v: %s%s", rank, e.Code, e.Errors, e.Text, e.Leak)
		}
	}
	return ""
}

// takeSteps attaches to a Weft writer that runs, takes n steps and leaves.
func takeSteps(t *testing.T, name string, writers, n int) error {
	t.Helper()
	r, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 10}})
	if err != nil {
		return err
	}
	defer r.Close()
	check := zoo.Check{Ranks: writers, From: zoo.Weft, Prefixes: few}
	last := -1
	for st, err := range r.Steps(t.Context()) {
		if err != nil {
			return err
		}
		number, err := readStep(t.Context(), st, check)
		if err != nil {
			return err
		}
		if last >= 0 && number != last+1 {
			return fmt.Errorf("step %d after %d", number, last)
		}
		last = number
		if n--; n == 0 {
			return nil
		}
	}
	return fmt.Errorf("the stream has ended; %d steps are missing", n)
}

// recordGoingOn tells what a writer of ADIOS2 does when its reader is dead.
func recordGoingOn(p *Peer) string {
	before := strings.Count(p.Stdout(), "STEP ")
	timer := time.NewTimer(recordTime)
	defer timer.Stop()
	select {
	case <-p.Done():
		return fmt.Sprintf("exit status %d", exitCode(p.Wait()))
	case <-timer.C:
	}
	after := strings.Count(p.Stdout(), "STEP ")
	p.Kill()
	switch {
	case after > before:
		return "goes on"
	case before == 0:
		return "waits for another reader"
	}
	return fmt.Sprintf("makes no step for %v", recordTime)
}

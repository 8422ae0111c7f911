package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// WeftPeer is a running cohort of Weft ranks: the counterpart of [Peer], with the
// same words. Its processes are the test binary, in the role that [Roles] names.
type WeftPeer struct {
	Ranks []*testutil.Process // one for each rank; with Local one for all
	t     testing.TB
}

// WeftWriter starts a Weft writer of the zoo: Ranks processes, or with Local one
// process with as many ranks. Each says the lines that [ADIOS2Writer] has.
// Params are those of package sst.
func WeftWriter(t testing.TB, o WriterOptions) *WeftPeer {
	t.Helper()
	return startRanks(t, o.Stream, rankJob{Writer: &o})
}

// WeftReader starts a Weft reader of the zoo, which checks all that it sees by
// itself. Lines of each rank: "OPENING name" once the cohort is there, READY after Open, "STEP n" for each step that was
// read, "SKIPPED n", "OK steps=N"; or "MISMATCH ...", "FAILED errors: text".
func WeftReader(t testing.TB, o ReaderOptions) *WeftPeer {
	t.Helper()
	return startRanks(t, o.Stream, rankJob{Reader: &o})
}

func startRanks(t testing.TB, s Stream, job rankJob) *WeftPeer {
	t.Helper()
	if s.Dir == "" {
		t.Fatal("interop: Stream.Dir is not set")
	}
	job.Name, job.Size, job.Local = filepath.Join(s.Dir, s.name()), max(s.Ranks, 1), s.Local
	p := &WeftPeer{t: t}
	if job.Size > 1 && !job.Local {
		job.Meet = newMeeting(t)
	}
	processes := job.Size
	if job.Local {
		processes = 1
	}
	for rank := range processes {
		job.Rank = rank
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		p.Ranks = append(p.Ranks, startRole(t, s, rankRole, string(text)))
	}
	return p
}

// startRole starts this test binary in a role, where the stream says.
func startRole(t testing.TB, s Stream, role string, args ...string) *testutil.Process {
	t.Helper()
	exe, env := testutil.RoleCommand(t, role)
	command := append(slices.Clone(s.Prefix), exe)
	command = append(command, args...)
	return testutil.Start(t, "", append([]string{env}, s.Env...), command[0], command[1:]...)
}

// name is the stream's.
func (s Stream) name() string {
	if s.Name == "" {
		return "zoo"
	}
	return s.Name
}

// Send sends a line to every process.
func (p *WeftPeer) Send(word string) {
	p.t.Helper()
	for _, r := range p.Ranks {
		r.Send(word)
	}
}

// Next lets every rank go on that waits (StepWait, Hold).
func (p *WeftPeer) Next() {
	p.t.Helper()
	p.Send(wordNext)
}

// CloseInput makes every rank close in order.
func (p *WeftPeer) CloseInput() {
	for _, r := range p.Ranks {
		r.CloseInput()
	}
}

// Expect waits until every process has said a line that starts with prefix, and
// returns what follows it at the first one.
func (p *WeftPeer) Expect(prefix string) string {
	p.t.Helper()
	var first string
	for i, r := range p.Ranks {
		if text := r.Expect(prefix); i == 0 {
			first = text
		}
	}
	return first
}

// Stdout returns what the first process has said on stdout up to now.
func (p *WeftPeer) Stdout() string { return p.Ranks[0].Stdout() }

// Done returns a channel that is closed when the last process has ended.
func (p *WeftPeer) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range p.Ranks {
			<-r.Done()
		}
	}()
	return done
}

// Kill kills every process.
func (p *WeftPeer) Kill() {
	for _, r := range p.Ranks {
		r.Kill()
	}
}

// KillRank kills one process.
func (p *WeftPeer) KillRank(rank int) {
	p.t.Helper()
	if err := p.Ranks[rank].Signal(syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}

// OK waits until all ranks have ended, and fails the test unless all went well.
func (p *WeftPeer) OK() {
	p.t.Helper()
	for i, r := range p.Ranks {
		if err := r.Wait(); err != nil {
			p.t.Errorf("rank %d: %v\nstdout ended with:\n%s", i, err, lastLines(r.Stdout(), 30))
		}
	}
}

// StepNumbers waits until a reader has ended, fails the test unless all went well,
// and returns the numbers of its steps, which are the same on every rank.
func (p *WeftPeer) StepNumbers() []int {
	p.t.Helper()
	p.OK()
	first := stepLines(p.Ranks[0].Stdout())
	if len(p.Ranks) == 1 { // maybe of several ranks: each says every step
		first = slices.Compact(slices.Sorted(slices.Values(first)))
	}
	for i, r := range p.Ranks {
		if got := stepLines(r.Stdout()); len(p.Ranks) > 1 && !slices.Equal(got, first) {
			p.t.Errorf("rank 0 saw steps %v, rank %d %v", first, i, got)
		}
	}
	return first
}

// stepLines finds the lines "STEP n".
func stepLines(stdout string) (steps []int) {
	for line := range strings.Lines(stdout) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "STEP "); ok {
			if n, err := strconv.Atoi(text); err == nil {
				steps = append(steps, n)
			}
		}
	}
	return steps
}

// Skipped returns what the line SKIPPED of a rank says.
func (p *WeftPeer) Skipped(rank int) int {
	p.t.Helper()
	for line := range strings.Lines(p.Ranks[rank].Stdout()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "SKIPPED "); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				p.t.Error(err)
			}
			return n
		}
	}
	p.t.Errorf("rank %d has not said how many steps it skipped", rank)
	return -1
}

// Stats asks every process.
func (p *WeftPeer) Stats() []RankStats {
	p.t.Helper()
	var all []RankStats
	for i, r := range p.Ranks {
		r.Send(wordStats)
		var s RankStats
		if err := json.Unmarshal([]byte(r.Expect("STATS ")), &s); err != nil {
			p.t.Fatal(fmt.Errorf("rank %d: %w", i, err))
		}
		all = append(all, s)
	}
	return all
}

// infos returns what every rank has said in a line INFO up to now.
func infos[T any](p *WeftPeer) (all []T) {
	p.t.Helper()
	for _, r := range p.Ranks {
		for line := range strings.Lines(r.Stdout()) {
			text, ok := strings.CutPrefix(line, "INFO ")
			if !ok {
				continue
			}
			var info T
			if err := json.Unmarshal([]byte(text), &info); err != nil {
				p.t.Fatal(err)
			}
			all = append(all, info)
		}
	}
	return all
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// RankEnd is how a process of a cohort has ended.
type RankEnd struct {
	Late     bool     // it had not ended when the time was up
	Code     int      // exit status; -1 for a signal
	Errors   []string // names of sentinels, if an operation failed
	Text     string   // of the error
	Leak     string   // what it left
	Duration time.Duration
}

// End waits until a process has ended, but not longer than limit.
func (p *WeftPeer) End(rank int, limit time.Duration) (e RankEnd) {
	p.t.Helper()
	began := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	r := p.Ranks[rank]
	select {
	case <-r.Done():
	case <-timer.C:
		return RankEnd{Late: true, Duration: limit}
	}
	e.Duration = time.Since(began)
	if err := r.Wait(); err != nil {
		e.Code = -1
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			e.Code = exit.ExitCode()
		}
	}
	for line := range strings.Lines(r.Stdout()) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "FAILED "); ok {
			e.Errors, e.Text = parseFailure(text)
		}
		if text, ok := strings.CutPrefix(line, "LEAK "); ok {
			e.Leak = text
		}
	}
	return e
}

// Failed reports whether it failed with one of the errors of these names.
func (e RankEnd) Failed(names ...string) bool {
	return e.Code == exitFailed && slices.ContainsFunc(e.Errors, func(n string) bool { return slices.Contains(names, n) })
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// TestEndingOf: what a rank says of its end is what one line of stderr needs.
func TestEndingOf(t *testing.T) {
	x := &team{rank: 2, size: 3}
	for name, c := range map[string]struct {
		err  error
		want ending
	}{
		"well":            {nil, ending{Rank: 2}},
		"an error":        {errors.New("boom"), ending{Rank: 2, Code: exitFailed, Text: "boom"}},
		"two lines":       {errors.Join(errors.New("a"), errors.New("b\x1b")), ending{Rank: 2, Code: exitFailed, Text: `a; b\x1b`}},
		"wrong usage":     {usagef("bad"), ending{Rank: 2, Code: exitUsage, Text: "bad"}},
		"reported":        {fmt.Errorf("x: %w", errReported), ending{Rank: 2, Code: exitFailed}},
		"of the team":     {errTeam, ending{Rank: 2, Code: exitFailed, Text: errTeam.Error(), Follow: true}},
		"a step given up": {fmt.Errorf("x: %w", sst.ErrStepAborted), ending{Rank: 2, Code: exitFailed, Text: "x: step given up", Follow: true}},
		"a rank gone":     {cohort.ErrRankGone, ending{Rank: 2, Code: exitFailed, Text: message(cohort.ErrRankGone), Follow: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := x.endingOf(c.err)
			if d := cmp.Diff(c.want, *got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got.well() != (c.err == nil) {
				t.Errorf("well: %v", got.well())
			}
		})
	}
}

// TestVerdict: whatever the order in which ranks end, the verdict is an ending of
// one of them, and the one that tells most.
func TestVerdict(t *testing.T) {
	kinds := []ending{{}, {Code: exitFailed}, {Code: exitFailed, Text: "follows", Follow: true}, {Code: exitFailed, Text: "boom"}}
	weight := func(e ending) int {
		switch {
		case e.Text != "" && !e.Follow:
			return 3
		case e.Text != "":
			return 2
		case e.Code != exitOK:
			return 1
		}
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 6).Draw(t, "size")
		order := rapid.Permutation(upTo(size)).Draw(t, "order")
		x, said, stopped := leader(size)
		most := 0
		for i, rank := range order {
			e := rapid.SampledFrom(kinds).Draw(t, "ending")
			e.Rank = rank
			most = max(most, weight(e))
			x.ended(&e)
			if done := x.verdict != nil; done != (i == size-1) {
				t.Fatalf("a verdict after %d of %d: %v", i+1, size, done)
			}
		}
		switch got := weight(*x.verdict); {
		case most == 3 && got != 3, most == 0 != x.verdict.well(), most > 1 != (said.Len() > 0):
			t.Fatalf("verdict %+v; the worst is of kind %d; said %q", x.verdict, most, said)
		}
		if *stopped == x.verdict.well() {
			t.Fatalf("stopped %v after %+v", *stopped, x.verdict)
		}
	})
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// deaf is a channel that takes everything.
type deaf struct{ cohort.Channel }

func (deaf) Send(int, []byte) error { return nil }

// leader is rank 0 of a team, what it says, and whether its work was stopped.
func leader(size int) (x *team, said *bytes.Buffer, stopped *bool) {
	said, stopped = new(bytes.Buffer), new(bool)
	return &team{
		size: size, channel: deaf{}, ends: make([]*ending, size), stderr: said, changed: make(chan struct{}),
		cancel: func(error) { *stopped = true },
	}, said, stopped
}

// TestVerdictIsFinal: the first one is, and is said once.
func TestVerdictIsFinal(t *testing.T) {
	x, said, _ := leader(3)
	x.decide(&ending{Rank: 1, Code: exitUsage, Text: "first"})
	x.decide(&ending{Rank: 2, Code: exitFailed, Text: "second"})
	x.ended(&ending{Rank: 9}) // of a rank that is none
	if x.verdict.Text != "first" || said.String() != "weft: rank 1: first\n" {
		t.Errorf("%+v, said %q", x.verdict, said)
	}
}

// TestWithoutRoot: of those that rank 0 has left behind, one speaks.
func TestWithoutRoot(t *testing.T) {
	over, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	for name, c := range map[string]struct {
		rank int
		lost bool
		ctx  context.Context
		mine ending
		says string
		code int
	}{
		"rank 1 of a dead root":    {1, true, t.Context(), ending{}, "rank 0: is gone", exitFailed},
		"the others":               {2, true, t.Context(), ending{}, errReported.Error(), exitFailed},
		"no answer, all well here": {2, false, t.Context(), ending{}, "rank 2: " + errTeam.Error(), exitFailed},
		"interrupted":              {2, false, over, ending{}, "rank 2: interrupted", exitFailed},
		"an error of its own":      {2, false, over, ending{Code: exitUsage, Text: "bad"}, "rank 2: bad", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			x := &team{rank: c.rank, size: 3, lost: c.lost}
			err := x.withoutRoot(c.ctx, &c.mine)
			if err.Error() != c.says || codeOf(err) != c.code {
				t.Errorf("%q, exit code %d", err, codeOf(err))
			}
		})
	}
}

// TestNotes: a note says one thing, and says it to who reads it.
func TestNotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &ending{
			Rank: rapid.IntRange(0, 99).Draw(t, "rank"), Code: rapid.IntRange(0, 2).Draw(t, "code"),
			Text: rapid.String().Draw(t, "text"), Follow: rapid.Bool().Draw(t, "follow"),
		}
		for _, n := range []note{{Plan: &plan{Ranks: e.Rank, Steps: e.Code - 1}}, {End: e}, {Stop: e}, {All: e}} {
			b, err := json.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			var got note
			if err := json.Unmarshal(b, &got); err != nil || !cmp.Equal(n, got) {
				t.Fatalf("%s is %+v, %v", b, got, err)
			}
		}
	})
}

// TestAwaitGivesUp: the end of the context begins the last wait, an answer ends it.
func TestAwaitGivesUp(t *testing.T) {
	x, _, _ := leader(2)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if err := x.await(ctx, 1, func() bool { return false }); !errors.Is(err, errInterrupted) {
		t.Errorf("%v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- x.await(ctx, 0, x.over) }()
	x.mu.Lock()
	x.decide(&ending{})
	x.mu.Unlock()
	if err := <-waited; err != nil {
		t.Errorf("%v", err)
	}
}

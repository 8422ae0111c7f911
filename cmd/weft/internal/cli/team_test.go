package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// work is what one rank of a test's team does; it returns an error, and whether
// it is in a hurry with it.
type work func(ctx context.Context, t *team) (err error, hurry bool)

// errKilled makes a rank go without a word.
var errKilled = errors.New("killed")

// teamwork has n ranks do something, and returns what each of them says, and
// with which exit code it ends.
func teamwork(t *testing.T, n int, do func(rank int) work) (said []string, codes []int) {
	t.Helper()
	said, codes = make([]string, n), make([]int, n)
	var wg sync.WaitGroup
	for rank, c := range cohort.Local(n) {
		wg.Go(func() {
			var b bytes.Buffer
			ctx, team, err := newTeam(t.Context(), c, &b)
			if err != nil {
				t.Error(err)
				return
			}
			err, hurry := do(rank)(ctx, team)
			if errors.Is(err, errKilled) {
				c.Close()
				codes[rank] = -1
				return
			}
			codes[rank] = exitCode(&b, team.end(ctx, err, hurry))
			said[rank] = b.String()
		})
	}
	wg.Wait()
	return said, codes
}

// returns is a rank that ends at once.
func returns(err error, hurry bool) work {
	return func(context.Context, *team) (error, bool) { return err, hurry }
}

// waits is a rank whose work goes on until it is stopped.
func waits(ctx context.Context, _ *team) (error, bool) {
	<-ctx.Done()
	return fmt.Errorf("stopped: %w", context.Cause(ctx)), true
}

// toldByOther returns an error that began at the last of n ranks, as rank 0 gets it.
func toldByOther(t *testing.T, n int) error {
	t.Helper()
	name, errs := filepath.Join(t.TempDir(), "s"), make([]error, n)
	var wg sync.WaitGroup
	for rank, c := range cohort.Local(n) {
		wg.Go(func() {
			cfg := sst.WriterConfig{Cohort: c}
			if rank == n-1 {
				cfg.Params.QueueLimit = -1
			}
			_, errs[rank] = sst.Create(t.Context(), name, cfg)
			c.Close()
		})
	}
	wg.Wait()
	if rank, ok := sst.ErrorRank(errs[0]); !ok || rank != n-1 {
		t.Fatalf("%v is of rank %d, %v", errs[0], rank, ok)
	}
	return errs[0]
}

func TestTeamEnds(t *testing.T) {
	boom := errors.New("boom")
	follows := fmt.Errorf("step 3: %w", sst.ErrStepAborted)
	told := toldByOther(t, 3)
	usage := usageError{errors.New("bad")}
	for name, c := range map[string]struct {
		ranks []work
		code  int
		said  string
	}{
		"well":                     {[]work{returns(nil, false), returns(nil, false), returns(nil, false)}, exitOK, ""},
		"one fails":                {[]work{returns(follows, false), returns(follows, false), returns(boom, false)}, exitFailed, "weft: rank 2: boom\n"},
		"rank 0 fails":             {[]work{returns(boom, false), returns(follows, false), returns(nil, false)}, exitFailed, "weft: rank 0: boom\n"},
		"all fail alike":           {[]work{returns(boom, false), returns(boom, false), returns(boom, false)}, exitFailed, "weft: rank 0: boom\n"},
		"only what follows":        {[]work{returns(nil, false), returns(follows, false), returns(nil, false)}, exitFailed, "weft: rank 1: step 3: step given up\n"},
		"reported by all":          {[]work{returns(errReported, false), returns(errReported, false), returns(errReported, false)}, exitFailed, ""},
		"reported, and one fails":  {[]work{returns(errReported, false), returns(boom, false), returns(errReported, false)}, exitFailed, "weft: rank 1: boom\n"},
		"one cannot begin":         {[]work{waits, waits, returns(boom, true)}, exitFailed, "weft: rank 2: boom\n"},
		"rank 0 cannot begin":      {[]work{returns(boom, true), waits, waits}, exitFailed, "weft: rank 0: boom\n"},
		"wrong usage of one":       {[]work{waits, returns(usage, true), waits}, exitUsage, "weft: rank 1: bad\n"},
		"no such file on one":      {[]work{waits, returns(fmt.Errorf("x: %w", errNothing), true), waits}, exitUsage, "weft: rank 1: x: no such file or stream\n"},
		"interrupted":              {[]work{waits, returns(errInterrupted, true), waits}, exitFailed, "weft: rank 1: interrupted\n"},
		"told by the stream first": {[]work{returns(told, true), returns(told, false), returns(boom, true)}, exitFailed, "weft: rank 2: boom\n"},
		"told by the stream only":  {[]work{returns(told, false), returns(told, false), returns(told, false)}, exitUsage, "weft: rank 2: " + message(told) + "\n"},
		"one alone fails":          {[]work{returns(fs.ErrPermission, true)}, exitFailed, "weft: permission denied\n"},
	} {
		t.Run(name, func(t *testing.T) {
			said, codes := teamwork(t, len(c.ranks), func(rank int) work { return c.ranks[rank] })
			for rank := range c.ranks {
				if codes[rank] != c.code {
					t.Errorf("rank %d: exit code %d, want %d", rank, codes[rank], c.code)
				}
			}
			if got := strings.Join(said, ""); got != c.said {
				t.Errorf("said %q, want %q", got, c.said)
			}
		})
	}
}

// A rank dies without a word: all others end, and one says so.
func TestTeamLosesARank(t *testing.T) {
	for dead := range 4 {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			said, codes := teamwork(t, 4, func(rank int) work {
				if rank == dead {
					return returns(errKilled, false)
				}
				return waits
			})
			all := strings.Join(said, "")
			if want := fmt.Sprintf("weft: rank %d: is gone", dead); !strings.HasPrefix(all, want) || strings.Count(all, "\n") != 1 {
				t.Errorf("said %q, want %q", all, want)
			}
			for rank, code := range codes {
				if rank != dead && code != exitFailed {
					t.Errorf("rank %d: exit code %d", rank, code)
				}
			}
		})
	}
}

// Whoever has done its work waits for the others, and hears of what they meet.
func TestTeamWaitsForTheLast(t *testing.T) {
	go1 := make(chan struct{})
	said, codes := teamwork(t, 3, func(rank int) work {
		switch rank {
		case 1:
			return func(context.Context, *team) (error, bool) { <-go1; return errors.New("late"), false }
		case 2:
			return func(context.Context, *team) (error, bool) { close(go1); return nil, false }
		}
		return returns(nil, false)
	})
	if strings.Join(said, "") != "weft: rank 1: late\n" || codes[0] != 1 || codes[1] != 1 || codes[2] != 1 {
		t.Errorf("%q %v", said, codes)
	}
}

func TestTeamAgrees(t *testing.T) {
	_, codes := teamwork(t, 3, func(rank int) work {
		return func(ctx context.Context, team *team) (error, bool) {
			p, err := team.agree(ctx, plan{Ranks: 5 + rank, Steps: 7 * rank})
			if err == nil && p != (plan{Ranks: 5}) {
				err = fmt.Errorf("rank %d was told %+v", rank, p)
			}
			return err, true
		}
	})
	for rank, code := range codes {
		if code != exitOK {
			t.Errorf("rank %d: exit code %d", rank, code)
		}
	}
	said, _ := teamwork(t, 3, func(rank int) work {
		if rank == 0 {
			return returns(errors.New("no plan"), true)
		}
		return func(ctx context.Context, team *team) (error, bool) {
			_, err := team.agree(ctx, plan{})
			return err, true
		}
	})
	if strings.Join(said, "") != "weft: rank 0: no plan\n" {
		t.Errorf("%q", said)
	}
}

// Notes of another program, or of a rank that lies about itself.
func TestTeamHearsNonsense(t *testing.T) {
	said, codes := teamwork(t, 3, func(rank int) work {
		return func(_ context.Context, team *team) (error, bool) {
			if rank == 1 {
				for _, text := range []string{"", "x", "{}", `{"All":{"Code":9}}`, `{"Plan":{"Ranks":-1}}`, `{"End":null}`} {
					if err := team.channel.Send(0, []byte(text)); err != nil {
						return err, true
					}
				}
				return errors.New("me"), false
			}
			return nil, false
		}
	})
	if strings.Join(said, "") != "weft: rank 1: me\n" || codes[0] != exitFailed {
		t.Errorf("%q %v", said, codes)
	}
}

// Shares cover the ranks of the source, one after the other, and nobody is idle.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, ranks := rapid.IntRange(1, 40).Draw(t, "size"), rapid.IntRange(1, 200).Draw(t, "ranks")
		next := 0
		for rank := range size {
			s := (&team{rank: rank, size: size}).shareOf(ranks)
			if s.lo != next || s.count() < 1 || s.count() > max(ranks, size)/size+1 {
				t.Fatalf("rank %d of %d: %+v of %d ranks, next is %d", rank, size, s, ranks, next)
			}
			next = s.hi
		}
		if next != max(ranks, size) {
			t.Fatalf("%d ranks of %d are shared", next, ranks)
		}
	})
}

func TestRankWriter(t *testing.T) {
	var b bytes.Buffer
	w := &rankWriter{w: &b, rank: 7}
	newLogger(w).Warn("waiting", "for", "us")
	fmt.Fprint(w, "other\n")
	if b.String() != "weft: rank 7: waiting (for us)\nother\n" {
		t.Errorf("%q", b.String())
	}
}

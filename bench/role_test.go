package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRoleWords(t *testing.T) {
	a := roleArgs{role: "reader", name: "/tmp/s", bytes: 8 << 20, queue: 4, seconds: 1.5, warmup: 0.375, vars: 3, access: inPlace, profile: "p", rank: 1, ranks: 2, meet: meeting{"h:1", "t"}}
	w := a.words()
	got, err := parseRole(w[1:])
	if err != nil || w[0] != roleWord {
		t.Fatal(w, err)
	}
	if d := cmp.Diff(a, got, cmp.AllowUnexported(roleArgs{}, meeting{})); d != "" {
		t.Error(d)
	}
	for i := range w[1:] {
		if i == 1 || i == 7 || i == 8 || i >= 11 { // a name, an access, a file, an address, a token: anything goes
			continue
		}
		bad := append([]string(nil), w[1:]...)
		bad[i] = "x"
		if _, err := parseRole(bad); !errors.Is(err, errArgs) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := parseRole(w[2:]); !errors.Is(err, errArgs) {
		t.Error("a word is missing, and nobody minds")
	}
}

func TestClock(t *testing.T) {
	c := clock{warmup: 10 * time.Second}
	start := time.Unix(1000, 0)
	for i := range 21 { // a step each second: the one at 10 s ends the warm-up
		c.tick(start.Add(time.Duration(i) * time.Second))
	}
	if c.steps != 10 || c.to.Sub(c.from) != 10*time.Second {
		t.Errorf("%d steps in %v", c.steps, c.to.Sub(c.from))
	}
	var never clock
	never.warmup = time.Minute
	never.tick(start)
	if never.steps != 0 || never.to.Sub(never.from) != 0 {
		t.Errorf("%+v", never)
	}
}

func TestSum(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 1000, 1001} {
		data := make([]int64, n)
		for _, step := range []int64{0, 1, 12345, 1<<62 + 7} {
			fill(data, step)
			var plain uint64
			for i, v := range data {
				if v != step+int64(i) {
					t.Fatalf("element %d of %d in step %d is %d", i, n, step, v)
				}
				plain += uint64(v)
			}
			if got, want := sum(data), expected(n, uint64(step)); got != want || got != plain {
				t.Errorf("n %d step %d: sum %d, expected %d, plain %d", n, step, got, want, plain)
			}
		}
	}
}

func TestShares(t *testing.T) {
	a := roleArgs{bytes: 8 * 10 * 3, vars: 3, ranks: 4}
	next := uint64(0)
	for a.rank = range a.ranks {
		b := a.share()
		if b.Start[0] != next || b.Count[0] < 2 {
			t.Errorf("rank %d has %v", a.rank, b)
		}
		next += b.Count[0]
	}
	if next != 10 {
		t.Errorf("the shares have %d elements of 10", next)
	}
}

// All ranks of both roles in one process, in both accesses.
func TestRoles(t *testing.T) {
	for _, access := range []access{copying, inPlace} {
		for _, ranks := range [][2]int{{1, 1}, {2, 3}} {
			t.Run(fmt.Sprintf("%s, %dx%d", access, ranks[0], ranks[1]), func(t *testing.T) {
				a := roleArgs{name: filepath.Join(t.TempDir(), "s"), bytes: 64 << 10, vars: 2, queue: 1, seconds: 0.05, access: access}
				written := playRanks(t, a, ranks[0], writeStream)
				read := playRanks(t, a, ranks[1], readStream)
				w := <-written
				for range ranks[0] - 1 {
					<-written
				}
				for range ranks[1] {
					// The first step starts the clock.
					if r := <-read; r.Bad != 0 || r.Steps != w.Steps-1 || r.Seconds <= 0 {
						t.Errorf("wrote %+v, read %+v", w, r)
					}
				}
			})
		}
	}
}

// playRanks plays the ranks of one side in the background.
func playRanks(t *testing.T, a roleArgs, ranks int, work func(context.Context, roleArgs) (said, error)) <-chan said {
	t.Helper()
	m, err := newMeeting(ranks)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan said, ranks)
	for rank := range ranks {
		a := a // each has its own
		a.rank, a.ranks, a.meet = rank, ranks, m
		go func() {
			s, err := work(t.Context(), a)
			if err != nil {
				t.Errorf("rank %d: %v", a.rank, err)
			}
			out <- s
		}()
	}
	return out
}

func BenchmarkFill8MiB(b *testing.B) {
	data := make([]int64, 1<<20)
	b.SetBytes(8 << 20)
	for b.Loop() {
		fill(data, 7)
	}
}

func BenchmarkSum8MiB(b *testing.B) {
	data := make([]int64, 1<<20)
	b.SetBytes(8 << 20)
	for b.Loop() {
		sum(data)
	}
}

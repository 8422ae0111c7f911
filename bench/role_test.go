package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-fabric/weft/step"
)

func TestRoleWords(t *testing.T) {
	a := roleArgs{role: "reader", name: "/tmp/s", bytes: 8 << 20, queue: 4, seconds: 1.5, warmup: 0.375, vars: 3, plane: native, access: inPlace, profile: "p", rank: 1, ranks: 2, blocks: 5, local: 1, meet: meeting{"h:1", "t"}}
	w := a.words()
	got, err := parseRole(w[1:])
	if err != nil || w[0] != roleWord {
		t.Fatal(w, err)
	}
	if d := cmp.Diff(a, got, cmp.AllowUnexported(roleArgs{}, meeting{})); d != "" {
		t.Error(d)
	}
	for i := range w[1:] {
		if i == 1 || i == 7 || i == 8 || i == 9 || i >= 14 { // a name, a plane, an access, a file, an address, a token: anything goes
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

func TestParts(t *testing.T) {
	a := roleArgs{bytes: 8 * 10, vars: 1, ranks: 2, rank: 1, blocks: 3}
	next := uint64(5)
	for _, b := range a.parts() {
		if b.Start[0] != next || b.Count[0] < 1 {
			t.Errorf("%v after %d", b, next)
		}
		next += b.Count[0]
	}
	if next != 10 {
		t.Errorf("the blocks end at %d", next)
	}
}

func TestOverlap(t *testing.T) {
	box := func(from, to uint64) step.Box { return step.Box{Start: []uint64{from}, Count: []uint64{to - from}} }
	for _, c := range [][3]step.Box{
		{box(0, 10), box(3, 5), box(3, 5)},
		{box(3, 5), box(0, 10), box(3, 5)},
		{box(0, 4), box(3, 5), box(3, 4)},
		{box(0, 3), box(3, 5), box(3, 3)},
		{box(5, 9), box(0, 2), box(5, 5)},
	} {
		if got := overlap(c[0], c[1]); !got.Equal(c[2]) {
			t.Errorf("%v and %v: %v", c[0], c[1], got)
		}
	}
}

// All ranks of both roles in one process, in all accesses and planes.
func TestRoles(t *testing.T) {
	for _, by := range []plane{sockets, native} {
		for _, access := range []access{copying, viewing, inPlace} {
			for _, ranks := range [][3]int{{1, 1, 1}, {2, 1, 3}, {1, 3, 1}} { // writers, in how many processes, readers
				t.Run(fmt.Sprintf("%s, %s, %v ranks", by, access, ranks), func(t *testing.T) {
					a := roleArgs{name: filepath.Join(t.TempDir(), "s"), bytes: 64 << 10, vars: 2, queue: 1, seconds: 0.05, plane: by, access: access, blocks: 2, local: ranks[1]}
					written := playRanks(t, a, ranks[0], writeStream)
					a.local = 1
					read := playRanks(t, a, ranks[2], readStream)
					w := <-written
					for range ranks[0] - 1 {
						<-written
					}
					for range ranks[2] {
						r := <-read
						if r.Bad != 0 || r.Steps != w.Steps || r.Seconds <= 0 || r.Memory < 1<<20 {
							t.Errorf("wrote %+v, read %+v", w, r)
						}
						if by == native && r.Viewed != (access != copying) {
							t.Errorf("viewed: %v", r.Viewed)
						}
					}
				})
			}
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

package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRoleWords(t *testing.T) {
	a := roleArgs{role: "reader", name: "/tmp/s", bytes: 8 << 20, queue: 4, seconds: 1.5, warmup: 0.375, access: inPlace, profile: "p"}
	w := a.words()
	got, err := parseRole(w[1:])
	if err != nil || w[0] != roleWord {
		t.Fatal(w, err)
	}
	if d := cmp.Diff(a, got, cmp.AllowUnexported(roleArgs{})); d != "" {
		t.Error(d)
	}
	for i := range w[1:] {
		if i == 1 || i >= 6 { // a name, an access, a file: anything goes
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

// Both roles in one process, in both accesses.
func TestRoles(t *testing.T) {
	for _, access := range []access{copying, inPlace} {
		t.Run(string(access), func(t *testing.T) {
			a := roleArgs{name: filepath.Join(t.TempDir(), "s"), bytes: 64 << 10, queue: 1, seconds: 0.05, access: access}
			written := make(chan said, 1)
			failed := make(chan error, 1)
			go func() {
				s, err := writeStream(t.Context(), a)
				written <- s
				failed <- err
			}()
			r, err := readStream(t.Context(), a)
			w := <-written
			if err := errors.Join(err, <-failed); err != nil {
				t.Fatal(err)
			}
			// The first step starts the clock.
			if r.Bad != 0 || r.Steps != w.Steps-1 || r.Seconds <= 0 {
				t.Errorf("wrote %+v, read %+v", w, r)
			}
		})
	}
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

package shmem

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// A producer for whom there is no room need not be told of what was taken by Flush: when all that it has published
// is taken, there is room for any record.
func TestRingRoomWithoutFlush(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := RingConfig{MaxBody: rapid.IntRange(0, 300).Draw(rt, "max")}
		r := newRing(t, c.RingSize(rapid.SampledFrom([]int{0, 4096}).Draw(rt, "size")), c)
		for range 100 {
			n := rapid.IntRange(0, c.MaxBody).Draw(rt, "n")
			_, err := r.Reserve(n)
			if errors.Is(err, ErrFull) {
				r.Publish()
				for rec, err := r.Peek(); rec != nil || err != nil; rec, err = r.Peek() {
					if err != nil {
						rt.Fatal(err)
					}
					r.Advance()
				}
				_, err = r.Reserve(n)
			}
			if err != nil {
				rt.Fatal(err)
			}
			r.Commit()
			if rapid.Bool().Draw(rt, "take one") {
				r.Publish()
				if _, err := r.Peek(); err != nil {
					rt.Fatal(err)
				}
				r.Advance()
			}
		}
	})
}

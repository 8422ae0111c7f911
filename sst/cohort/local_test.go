package cohort

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
)

// joinsOf returns what the ranks of a Local count, and fails if they have a wrong
// idea of how many channels a name has.
func joinsOf(t *testing.T, ranks []Cohort) []map[string]uint32 {
	t.Helper()
	var all []map[string]uint32
	for _, c := range ranks {
		l := c.(*local)
		records := map[string]int{}
		for k := range l.channels {
			records[k.name]++
		}
		if diff := cmp.Diff(records, l.records); diff != "" {
			t.Errorf("rank %d: channels of each name (-are +counted):\n%s", l.rank, diff)
		}
		all = append(all, l.joins)
	}
	return all
}

// counts fails unless the ranks count so many joins of the only name, none for 0.
func counts(t *testing.T, what string, ranks []Cohort, want ...uint32) {
	t.Helper()
	all := make([]map[string]uint32, len(want))
	for i, n := range want {
		all[i] = map[string]uint32{}
		if n > 0 {
			all[i]["s"] = n
		}
	}
	if diff := cmp.Diff(all, joinsOf(t, ranks)); diff != "" {
		t.Errorf("%s: joins (-want +got):\n%s", what, diff)
	}
}

// A process that makes streams of ever new names does not grow: the last rank to
// leave takes the name with it.
func TestNamesAreForgotten(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, n := range []int{1, 2, 5} {
		ranks := makeLocal(t, n)
		for i := range 100 {
			name := fmt.Sprint("s", i)
			ends := joinAll(t, slices.Concat(ranks, ranks), name) // each twice
			rnd.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
			for j, e := range ends {
				if got := len(joinsOf(t, ranks)[0]); got != 1 {
					t.Fatalf("%d of %d ends are closed, and rank 0 counts %d names", j, len(ends), got)
				}
				e.Close()
			}
		}
		for rank, joins := range joinsOf(t, ranks) {
			if len(joins) > 0 {
				t.Errorf("rank %d of %d still counts %v", rank, n, joins)
			}
		}
	}
}

// The count goes on while one rank is behind: the n-th join meets the n-th.
func TestNameIsKeptForWhoIsBehind(t *testing.T) {
	ranks := makeLocal(t, 2)
	for i := range 2 {
		e := join(t, ranks[0], "s")
		e.send(1, fmt.Sprint("to number ", i+1))
		e.Close()
	}
	counts(t, "rank 1 is behind", ranks, 2, 0)
	for i := range 2 {
		e := join(t, ranks[1], "s")
		e.wants(0, fmt.Sprint("to number ", i+1))
		e.Close()
	}
	counts(t, "all have left", ranks, 0, 0)
	again := joinAll(t, ranks, "s")
	again[0].send(1, "and again")
	again[1].wants(0, "and again")
	counts(t, "anew", ranks, 1, 1)
}

// A rank that is gone will not join: the name goes with it.
func TestNameOfADeadRank(t *testing.T) {
	ranks := makeLocal(t, 3)
	for _, e := range joinAll(t, ranks[:2], "s") {
		e.Close()
	}
	counts(t, "rank 2 has yet to join", ranks, 1, 1, 0)
	ranks[2].Close()
	counts(t, "rank 2 is closed", ranks, 0, 0, 0)
	ranks[1].Close()
	ranks[0].Close()
}

// What a dead rank has sent is for the right join all the same.
func TestNameKeptForAMessage(t *testing.T) {
	ranks := makeLocal(t, 2)
	first, second := join(t, ranks[1], "s"), join(t, ranks[1], "s")
	second.send(0, "to the second")
	first.Close()
	ranks[1].Close()
	join(t, ranks[0], "s").Close()
	counts(t, "a message waits for the second join", ranks, 1, 0)
	e := join(t, ranks[0], "s")
	e.wants(1, "to the second")
	e.wantsLost(1)
	e.Close()
	counts(t, "it has come", ranks, 0, 0)
}

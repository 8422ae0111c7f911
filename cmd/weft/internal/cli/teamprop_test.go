package cli

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTeamIsOfOneMind: whatever the ranks do, and in whatever order, all of those that
// are left have one exit code, 0 only if all is well, and the error is said once.
func TestTeamIsOfOneMind(t *testing.T) {
	const (
		well = iota
		fails
		hurries
		dies
		goesOn // until it is stopped
		kinds
	)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "ranks")
		does := rapid.SliceOfN(rapid.IntRange(well, kinds-1), n, n).Draw(rt, "does")
		stopped, dead, bad := false, 0, false
		for _, d := range does {
			stopped = stopped || d == hurries || d == dies
			bad = bad || d == fails || d == hurries || d == dies
			if d == dies {
				dead++
			}
		}
		ranks := make([]work, n)
		for i, d := range does {
			switch {
			case d == fails:
				ranks[i] = returns(fmt.Errorf("error of %d", i), false)
			case d == hurries:
				ranks[i] = returns(fmt.Errorf("error of %d", i), true)
			case d == dies:
				ranks[i] = returns(errKilled, false)
			case d == goesOn && stopped:
				ranks[i] = waits
			default:
				ranks[i] = returns(nil, false)
			}
		}
		said, codes := teamwork(t, n, func(rank int) work { return ranks[rank] })
		for rank, code := range codes {
			if does[rank] != dies && (code == exitOK) == bad {
				rt.Errorf("%v: rank %d ends with %d: %q", does, rank, code, said)
			}
		}
		lines := strings.Count(strings.Join(said, ""), "\n")
		speaker := does[0] != dies || does[1] != dies // the one of them that is left
		least := 1
		if does[0] == dies { // it may have told the others what it said before, and that is not in said
			least = 0
		}
		if bad && speaker && dead < n && (lines < least || lines > 1) || !bad && lines != 0 {
			rt.Errorf("%v: said %q", does, said)
		}
	})
}

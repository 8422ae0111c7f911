package suggest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestNearest(t *testing.T) {
	names := []string{"QueueLimit", "QueueFullPolicy", "OpenTimeoutSecs", "T"}
	for _, c := range []struct{ in, want string }{
		{"QueueLimits", "QueueLimit"},
		{"queuelimit", "QueueLimit"},
		{"OpenTimeout", "OpenTimeoutSecs"},
		{"OpenTimeoutSec", "OpenTimeoutSecs"},
		{"t", "T"},
		{"something else", ""},
		{"", "T"},
	} {
		got := Nearest(c.in, names)
		if got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := Nearest("abcd", []string{"abcX", "abcY"}); got != "abcX" {
		t.Errorf("of equal ones: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		most int
		want int
	}{
		{"", "", 0, 0},
		{"a", "", 1, 1},
		{"", "abc", 3, 3},
		{"", "abc", 2, 3},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 3},
		{"kitten", "sitting", 100, 3},
		{"same", "same", 0, 0},
		{"same", "sane", 0, 1},
		{"ab", "ba", 2, 2},
		{"a", "b", -1, 0},
	} {
		if got := Distance(c.a, c.b, c.most); got != c.want {
			t.Errorf("Distance(%q, %q, %d) = %d, want %d", c.a, c.b, c.most, got, c.want)
		}
	}
}

// plain is the distance by its definition.
func plain(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return plain(a[1:], b[1:])
	}
	return 1 + min(plain(a[1:], b[1:]), plain(a[1:], b), plain(a, b[1:]))
}

// Within the limit Distance is exact, beyond it says so.
func TestDistanceAgainstDefinition(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func() string {
		var s strings.Builder
		for range r.IntN(7) {
			s.WriteByte("abc"[r.IntN(3)])
		}
		return s.String()
	}
	for range 3000 {
		a, b, most := word(), word(), r.IntN(6)
		want := min(plain(a, b), most+1)
		if got, back := Distance(a, b, most), Distance(b, a, most); got != want || back != want {
			t.Fatalf("Distance(%q, %q, %d) = %d and %d, want %d", a, b, most, got, back, want)
		}
	}
}

// Names from outside may be as long as a message: comparing two must not take
// the product of their lengths.
func TestLongNames(t *testing.T) {
	a, b := strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20-1)+"y"
	start := time.Now()
	if got := Distance(a, b, 2); got != 1 {
		t.Errorf("distance %d", got)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

package suggest

import "testing"

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
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

package cli

import "testing"

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "T", true},
		{"*", "fields/E/x", true},
		{"fields/*", "fields/E/x", true},
		{"*x", "fields/E/x", true},
		{"fields?E", "fields/E", true},
		{"[a-c]/x", "b/x", true},
		{"[a-c]/x", "d/x", false},
		{"br[0]", "br[0]", true},
		{"br[0]", "br0", true},
		{"[", "[", true},
		{"[", "x", false},
		{"a,b", "a", false},
		{"a,b", "a,b", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestNearName(t *testing.T) {
	names := []string{"g2", "fields/temperature", "pressure"}
	for in, want := range map[string]string{"G2": "g2", "temperature": "fields/temperature", "/pressure": "pressure", "presure": "pressure", "quite different": ""} {
		if got := nearName(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// TestF92Filters is field report F92: a filter shows the providers that are meant, and no name that means nothing passes by.
func TestF92Filters(t *testing.T) {
	var all []string
	for _, p := range provider.All() {
		all = append(all, p.Name())
	}
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(names, n) })
	}
	for _, c := range []struct {
		filter string
		want   []string // nil: refused
		code   int
		says   string
	}{
		{"", nil, 2, "-p is empty"},
		{"fake", []string{"fake"}, 0, ""},
		{"fake;loop", []string{"fake", "loop"}, 0, ""},
		{" loop, fake ;; loop", []string{"fake", "loop"}, 0, ""},
		{"fake;absent", []string{"fake", "absent"}, 0, ""},
		{"absent;cracked", []string{"absent", "cracked"}, 1, "no such device"},
		{"^absent", without("absent"), 0, ""},
		{"^absent;cracked;fake", without("absent", "cracked", "fake"), 0, ""},
		{"^" + strings.Join(without("absent"), ";"), []string{"absent"}, 1, "absent cannot be used here"},
		{"^" + strings.Join(all, ";"), nil, 2, "leaves no provider"},
		{"fak", nil, 2, `did you mean "fake"`},
		{"^fak", nil, 2, `no provider "fak"`},
		{"fake;^loop", nil, 2, "in front"},
		{"^", nil, 2, "names no provider"},
		{";", nil, 2, "names no provider"},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), Env{Stdout: &out, Stderr: &errs, Root: t.TempDir()}, []string{"info", "--json", "-p", c.filter})
		if code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%q: exit %d, want %d; says %q, want %q", c.filter, code, c.code, &errs, c.says)
		}
		var o infoObject
		if out.Len() > 0 {
			if err := json.Unmarshal(out.Bytes(), &o); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, p := range o.Providers {
			got = append(got, p.Provider)
		}
		want := slices.Sorted(slices.Values(c.want))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q shows %v, want %v", c.filter, got, want)
		}
	}
}

// TestF92Table: the short list says what one chooses by, of each provider once, and of what cannot be used why.
func TestF92Table(t *testing.T) {
	head, rest, _ := strings.Cut(runInfoIn(t, machine), "\n")
	if got := strings.Fields(head); !slices.Equal(got, []string{"PROVIDER", "USABLE", "REACHES", "DOMAIN", "ENDPOINT", "ADDRESS", "PROGRESS", "WAIT", "CAPS"}) {
		t.Errorf("the columns are %v", got)
	}
	table, _, _ := strings.Cut(rest, "\nhost\n")
	seen := map[string]int{}
	for line := range strings.Lines(table) {
		if cells := strings.Fields(line); len(cells) > 6 {
			seen[cells[0]]++
			if cells[0] == "loop" && !strings.Contains(strings.Join(cells, " "), "loop yes this process process rdm loop://NAME auto manual") {
				t.Errorf("the row of loop is %v", cells)
			}
			if cells[0] == "shm" && !strings.Contains(strings.Join(cells, " "), " node rdm shm://NAME ") {
				t.Errorf("the row of shm is %v", cells)
			}
		}
	}
	for _, p := range provider.All() {
		if seen[p.Name()] != 1 {
			t.Errorf("%s stands in the table %d times:\n%s", p.Name(), seen[p.Name()], table)
		}
	}
	if !strings.Contains(table, "absent: no such device") || !strings.Contains(table, "cracked: ") {
		t.Errorf("it does not say why:\n%s", table)
	}
}

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/sst"
)

// Without a name every parameter is listed, once, with its default and help.
func TestParamsLists(t *testing.T) {
	r := run(t.Context(), "params")
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	known := sst.ParamList()
	if len(lines) != len(known)+1 || !strings.HasPrefix(lines[0], "NAME ") {
		t.Fatalf("%d lines for %d parameters:\n%s", len(lines), len(known), r.stdout)
	}
	sides := map[string]string{"writer": "writer", "reader": "reader", "writer and reader": "both"}
	meaningAt := strings.Index(lines[0], "MEANING")
	for i, p := range known {
		f, value := strings.Fields(lines[i+1]), p.Default
		if value == "" {
			value = "-"
		}
		if f[0] != p.Name || f[1] != sides[p.Sides] || f[2] != value || !strings.HasPrefix(lines[i+1][meaningAt:], p.Help) {
			t.Errorf("%+v is listed as %q", p, lines[i+1])
		}
		for _, word := range p.Values {
			if len(p.Values) > 1 && !strings.Contains(lines[i+1][meaningAt:], word) {
				t.Errorf("%q does not say that it can be %s", lines[i+1], word)
			}
		}
	}
	var o struct{ Params []sst.ParamInfo }
	r = run(t.Context(), "params", "--json")
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil || r.code != exitOK {
		t.Fatalf("%v: %+v", err, r)
	}
	if d := cmp.Diff(known, o.Params); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What is about a stream needs one.
func TestParamsOfNothing(t *testing.T) {
	for _, args := range [][]string{{"-P", "QueueLimit=1"}, {"--attach"}, {"--timeout", "1s"}, {""}, {"a", "b"}} {
		if r := run(t.Context(), append([]string{"params"}, args...)...); r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, "NAME") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// Every value that a parameter is listed with is one that it takes.
func TestListedValuesAreTaken(t *testing.T) {
	for _, p := range sst.ParamList() {
		for _, v := range append(p.Values, p.Default) {
			if v == "" && p.Values == nil {
				continue
			}
			if _, err := sst.ParseParams(map[string]string{p.Name: v}); err != nil {
				t.Errorf("%s=%s: %v", p.Name, v, err)
			}
		}
	}
}

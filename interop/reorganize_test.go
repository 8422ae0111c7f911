package interop

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// cannotPass says what adios2_reorganize cannot copy, from any stream, also one
// of ADIOS2's own: it stops at local arrays of several blocks ("does not support
// Local Arrays"), and an empty string makes it crash.
func cannotPass(v zoo.Var) bool { return v.Kind == zoo.LocalArray || v.Name == "special/str" }

// TestF90WeftToReorganize is the second half of acceptance line 5: a Weft stream
// through ADIOS2's copy tool into a file, which ADIOS2's lister then lists, and
// which holds what was written.
func TestF90WeftToReorganize(t *testing.T) {
	const total = 4
	for _, ranks := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			dir := t.TempDir()
			copier := Reorganize(t, dir, "zoo", "SST", "DataTransport=WAN,OpenTimeoutSecs=60", "copy.bp", "BP5", "")
			z := createZoo(t, filepath.Join(dir, "zoo"), ranks, sst.Params{})
			z.Skip = cannotPass
			put(t, z, 0, total)
			finish(t, z)
			copier.OK()
			if diff := cmp.Diff(wantListing(ranks, total), listing(t, dir, "copy.bp")); diff != "" {
				t.Errorf("bpls shows (-want +got):\n%s", diff)
			}
			wantAttributeListing(t, BPLS(t, dir, "-a", "-l", "copy.bp"))
			wantCopied(t, filepath.Join(dir, "copy.bp"), ranks, total)
		})
	}
}

// line is what bpls tells of a variable.
var line = regexp.MustCompile(`^  (\w.*?)  +(\S.*?)  +(\d+\*)?(scalar|\{.*\})`)

// listing runs bpls and returns name to "type, steps*shape".
func listing(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for text := range strings.Lines(BPLS(t, dir, name)) {
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("bpls says %q", text)
			continue
		}
		got[m[2]] = m[1] + ", " + m[3] + m[4]
	}
	return got
}

// wantListing makes the same of the table. The tool does not write arrays of no
// elements; a dimension that changes is shown as "__".
func wantListing(ranks, total int) map[string]string {
	want := map[string]string{}
	for _, v := range passed(ranks, total) {
		var dims []string
		times := 0
		for n := range total {
			shape, _, present := v.Expect(n, ranks)
			if !present {
				continue
			}
			times++
			dims = merge(dims, shape)
		}
		shape := "{" + strings.Join(dims, ", ") + "}"
		if v.Kind == zoo.GlobalValue {
			shape = "scalar"
		}
		want[v.Name] = fmt.Sprintf("%s, %d*%s", v.Type, times, shape)
	}
	return want
}

// merge notes one more shape.
func merge(dims []string, shape []uint64) []string {
	for i, n := range shape {
		text := strconv.FormatUint(n, 10)
		switch {
		case len(dims) <= i:
			dims = append(dims, text)
		case dims[i] != text:
			dims[i] = "__"
		}
	}
	return dims
}

// passed are the variables that come through the tool.
func passed(ranks, total int) []zoo.Var {
	return slices.DeleteFunc(zoo.Vars(ranks), func(v zoo.Var) bool {
		if cannotPass(v) {
			return true
		}
		for n := range total {
			_, data, present := v.Expect(n, ranks)
			if present && reflect.ValueOf(data).Len() > 0 {
				return false
			}
		}
		return true
	})
}

// wantAttributeListing checks that bpls shows every attribute of step 0.
func wantAttributeListing(t *testing.T, out string) {
	t.Helper()
	for _, a := range zoo.Attributes(0) {
		shown := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(a.Type) + ` +` + regexp.QuoteMeta(a.Name) + ` +attr`)
		if !shown.MatchString(out) {
			t.Errorf("bpls shows no attribute %s of type %s", a.Name, a.Type)
		}
	}
}

// wantCopied reads the copy and compares every value with the table.
func wantCopied(t *testing.T, path string, ranks, total int) {
	t.Helper()
	r, err := bp.Open(t.Context(), path, bp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var prefixes []string
	for _, v := range passed(ranks, total) {
		prefixes = append(prefixes, v.Name)
	}
	var numbers []int
	for st, err := range r.Steps(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := StepJSON(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		asTheCopyHasThem(t, got)
		n, err := zoo.Check{Ranks: ranks, From: zoo.Weft, Prefixes: prefixes}.Step(got)
		if err != nil {
			t.Error(err)
		}
		numbers = append(numbers, n)
	}
	wantAll(t, numbers, total)
}

// asTheCopyHasThem gives variables the kind back that the copy has lost: a
// reader of ADIOS2 is shown local values and joined arrays as global arrays, so
// the tool writes them as such.
func asTheCopyHasThem(t *testing.T, step map[string]any) {
	t.Helper()
	for name, v := range step["variables"].(map[string]any) {
		was, ok := zoo.Lookup(name)
		if !ok || was.Kind != zoo.LocalValue && was.Kind != zoo.JoinedArray {
			continue
		}
		v := v.(map[string]any)
		if v["kind"] != zoo.GlobalArray {
			t.Errorf("%s is a %v in the copy", name, v["kind"])
		}
		v["kind"] = was.Kind
	}
}

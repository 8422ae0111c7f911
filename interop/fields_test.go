package interop

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/fabrictest"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// Reports of users have numbers, F01 and so on, and what answers one carries its
// number in its name, anywhere in the module. Here stands which reports there must
// be an answer to, and what answers those that no test is named by.

// answer says what answers a report besides the tests that are named by it.
type answer struct {
	tests []string // tests with other names
	lines []string // variables and attributes of the zoo: in every test that reads or writes it
	why   string   // why there is no test, and what covers the idea
}

// groups are the numbers of the reports about attaching (A), queues and slow
// readers (B), peers that die (C), shared memory (D), queues, progress and scale (E), registration (F), data (G), and tools and what is left behind (H).
var groups = map[string][]int{
	"A": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	"B": {11, 12, 13, 14, 15, 17, 18, 20},
	"C": {22, 23, 24, 25, 26, 27, 29, 31, 32, 33, 34},
	"D": {35, 37, 38, 39, 41, 42, 43, 44},
	"E": {46, 48, 49, 51, 52, 53, 54, 57}, // as far as they concern a fabric or a block's size
	"F": {59, 60, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71},
	"G": {72, 73, 74, 77, 80, 81, 82, 83, 85, 87, 88},
	"H": {89, 90, 91, 92, 93, 94, 95, 96},
}

// fabricReports are those of groups C, D and E that are about a fabric or shared memory: they must be answered there, by the
// law for every provider or a provider's own test, whatever answers them in a stream.
var fabricReports = []int{25, 26, 27, 29, 31, 32, 33, 34, 35, 37, 38, 39, 41, 42, 43, 44, 46, 48, 49, 51, 52, 53, 57}

// answers are what the names of tests do not tell.
var answers = map[int]answer{
	4:  {tests: []string{"TestSoakMatrix"}},
	9:  {tests: []string{"TestADIOS2LateWeftReader"}},
	12: {tests: []string{"TestADIOS2WaitsForSlowWeftReader"}},
	22: {tests: []string{"TestSoakKill"}},
	23: {tests: []string{"TestADIOS2ReaderLeaves"}},
	26: {tests: []string{"TestSoakAcrossNamespaces"}},
	33: {tests: []string{"TestSoakAttachCycles"}},
	34: {tests: []string{"TestSoakAttachCycles", "TestSoakKill", "TestReaderRankStopped"}},
	60: {tests: []string{"TestHistories"}}, // 10 000 histories against a model
	68: {tests: []string{"TestSoakCompany", "TestSoakStaleTable"}},
	72: {lines: []string{"shape/empty", "shape/owner", "blocks/zero"}}, // blocks of no elements, of one rank or of all but one
	73: {lines: []string{"shape/empty"}},                               // both readers of the zoo read empty shares of it
	74: {lines: []string{"blocks/some"}},                               // ranks without a block of a local array
	77: {lines: []string{"attrs/none", "attrs/nostr"}},                 // attributes without elements
	80: {lines: []string{"first/value", "last/value", "turn/f64", "turn/i8", "turn/c64", "turn/str"}},
	88: {lines: []string{"odd/array", "odd/value", "odd/blocks"}}, // variables that come and go
	89: {tests: []string{"TestScripts"}},                          // dump.txtar
	90: {tests: []string{"TestPipeOfFixtures"}},
}

// TestFieldsAreAnswered checks that every report has an answer, and that the
// table names what exists.
func TestFieldsAreAnswered(t *testing.T) {
	tests := moduleTests(t, ".")
	for _, name := range fabrictest.Groups() { // of the conformance suite: tests of every provider
		tests["fabrictest/"+name] = true
	}
	lines := map[string]bool{}
	for _, v := range zoo.Vars(2) {
		lines[v.Name] = true
	}
	for _, a := range zoo.Attributes(0) {
		lines[a.Name] = true
	}
	for n, a := range answers {
		for _, name := range a.tests {
			if !tests[name] {
				t.Errorf("F%02d: no test %s", n, name)
			}
		}
		for _, name := range a.lines {
			if !lines[name] {
				t.Errorf("F%02d: no line %s of the zoo", n, name)
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, n := range groups[group] {
			named, a := namedBy(tests, n), answers[n]
			switch {
			case len(named)+len(a.tests) == 0 && a.why == "":
				t.Errorf("F%02d of group %s: no test answers it, and no line says why", n, group)
			case len(named) > 0 && a.why != "":
				t.Errorf("F%02d: there are %v, and a line says why there is none", n, named)
			case a.why != "":
				t.Logf("F%02d: no test: %s", n, a.why)
			default:
				t.Logf("F%02d: %s", n, strings.Join(slices.Concat(named, a.tests, a.lines), ", "))
			}
		}
	}
}

// TestFabricReports checks that what is about a fabric is answered by the law, which every provider is held to, and lists what else
// answers it.
func TestFabricReports(t *testing.T) {
	tests := moduleTests(t, "fabric", "prov")
	for _, name := range fabrictest.Groups() {
		tests["law/"+name] = true
	}
	for _, n := range fabricReports {
		named := namedBy(tests, n)
		if !slices.ContainsFunc(named, func(name string) bool { return strings.HasPrefix(name, "law/") }) {
			t.Errorf("F%02d: no group of the law for providers answers it", n)
		}
		t.Logf("F%02d: %s", n, strings.Join(named, ", "))
	}
}

// namedBy lists the tests that are named by a report.
func namedBy(tests map[string]bool, n int) (list []string) {
	number := regexp.MustCompile(fmt.Sprintf(`F%02d([^0-9]|$)`, n))
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if number.MatchString(name) {
			list = append(list, name)
		}
	}
	return list
}

// moduleTests returns the names of all test functions in folders of the module.
func moduleTests(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		testsOf(t, filepath.Join(testutil.ModuleRoot(t), folder), names)
	}
	return names
}

func testsOf(t *testing.T, folder string, names map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

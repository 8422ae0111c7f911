package interop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/weft-fabric/weft/interop/zoo"
)

// fields says which tests of this folder answer which reports of users (their
// numbers are in the names of tests all over the module), each against a real
// peer. What is about data alone is a line of the zoo and in every test that reads
// or writes it; such lines are named by their variables.
var fields = map[string][]string{
	"F01": {"TestF01StaleContactFile"},                                                  // a writer that was killed leaves its contact file
	"F04": {"TestF04TwoADIOS2Readers"},                                                  // two reader cohorts, one late
	"F06": {"TestF06PlaneMismatch", "TestF06MarshalMismatch"},                           // the sides do not fit
	"F09": {"TestADIOS2LateWeftReader"},                                                 // the first step of a late reader
	"F12": {"TestADIOS2WaitsForSlowWeftReader"},                                         // QueueLimit=1 holds up EndStep
	"F17": {"TestF17WeftDiscards", "TestF17ADIOS2Discards"},                             // dropped steps are counted
	"F22": {"TestF22WriterKilled", "TestSoakF22WriterRankKilled"},                       // a writer that dies
	"F23": {"TestF23ReadersLeave", "TestADIOS2ReaderLeaves"},                            // readers that leave before the end
	"F29": {"TestF29WriterStopped"},                                                     // a writer that hangs
	"F34": {"TestF34ReaderKilled"},                                                      // a reader that dies with a step in hand
	"F72": {"shape/empty", "shape/owner", "blocks/zero"},                                // blocks of no elements, of one rank or of all but one
	"F73": {"shape/empty"},                                                              // peers/reader.py reads empty shares of it
	"F74": {"blocks/some"},                                                              // ranks without a block of a local array
	"F77": {"attrs/none", "attrs/nostr"},                                                // attributes without elements
	"F80": {"first/value", "last/value", "turn/f64", "turn/i8", "turn/c64", "turn/str"}, // values put by one rank
	"F87": {"TestF87Operator"},                                                          // a compressed variable among others
	"F88": {"odd/array", "odd/value", "odd/blocks"},                                     // variables that come and go
	"F90": {"TestF90WeftToReorganize", "TestPipeOfFixtures"},                            // copying to and from streams
}

// TestFieldsAreAnswered checks that the table names what exists.
func TestFieldsAreAnswered(t *testing.T) {
	known := testNames(t)
	for _, v := range zoo.Vars(2) {
		known[v.Name] = true
	}
	for _, a := range zoo.Attributes(0) {
		known[a.Name] = true
	}
	for field, answers := range fields {
		for _, name := range answers {
			if !known[name] {
				t.Errorf("%s: neither a test nor a line of the zoo: %s", field, name)
			}
		}
	}
}

// testNames returns the names of the functions in this folder's tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

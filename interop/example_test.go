package interop

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// TestExampleMean is acceptance line 7: an analysis of at most 20 lines attaches
// to an ADIOS2 simulation and prints a mean for each step.
func TestExampleMean(t *testing.T) {
	const variable, steps, ranks = "array/f64", 5, 2
	dir := t.TempDir()
	mean := buildProgram(t, "./examples/mean")
	w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks}, Steps: steps})
	p := testutil.Start(t, dir, nil, mean, "zoo", variable)
	for n := range steps {
		if got, want := p.Expect("step "), fmt.Sprintf("%d: mean %g", n, meanOf(t, variable, n, ranks)); got != want {
			t.Errorf("it printed %q, want %q", got, want)
		}
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	w.OK()
}

func meanOf(t *testing.T, variable string, step, ranks int) float64 {
	t.Helper()
	_, data, _ := zoo.Expect(variable, step, ranks)
	values, ok := data.([]float64)
	if !ok {
		t.Fatalf("%s holds %T", variable, data)
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// TestExampleMeanIsShort counts the lines of the analysis.
func TestExampleMeanIsShort(t *testing.T) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, filepath.Join(testutil.ModuleRoot(t), "examples", "mean", "main.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "mean" {
			if lines := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; lines > 20 {
				t.Errorf("func mean has %d lines", lines)
			}
			return
		}
	}
	t.Error("no func mean")
}

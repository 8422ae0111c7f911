package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// module is the import path that this module's packages start with.
const module = "github.com/weft-fabric/weft"

// source is one file of the tree. Paths are relative to the module's root, with slashes.
type source struct {
	path string
	text []byte

	// For Go files only:
	fset    *token.FileSet
	ast     *ast.File
	imports []imported
}

// imported is one import of a Go file.
type imported struct {
	name string // as the file says it: an identifier, "_", "." or, where not given, ""
	path string
	pos  token.Pos
}

// finding is a place that breaks a rule.
type finding struct {
	path string
	line int // 0 for the whole file
	text string
}

func (f finding) String() string {
	if f.line == 0 {
		return fmt.Sprintf("%s: %s", f.path, f.text)
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text)
}

// at makes a finding at a place of a Go file.
func (s *source) at(pos token.Pos, format string, args ...any) finding {
	return finding{s.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

func (s *source) isGo() bool   { return s.ast != nil }
func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// dir is the folder of the file, "." for the root: for a Go file the package's path in the module.
func (s *source) dir() string { return path.Dir(s.path) }

// in reports whether the file lies in one of the folders or below.
func (s *source) in(dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		return s.dir() == d || strings.HasPrefix(s.dir(), d+"/")
	})
}

// parse makes a source of a file's text.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	s.fset = token.NewFileSet()
	file, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s.ast = file
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		imp := imported{path: p, pos: spec.Pos()}
		if spec.Name != nil {
			imp.name = spec.Name.Name
		}
		s.imports = append(s.imports, imp)
	}
	return s, nil
}

// load reads the tree below root: all text files but those that Go ignores as well (folders called
// testdata or vendor, names that start with a dot or an underscore) and other modules in it.
func load(root string) ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if file == root {
			return nil
		}
		if d.IsDir() {
			if ignoredDir(d.Name()) || exists(filepath.Join(file, "go.mod")) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in a second working tree
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// ignoredDir reports whether a folder is not looked into. CI's own folder is.
func ignoredDir(name string) bool {
	if name == ".ci" {
		return false
	}
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// uses calls visit for each use of a name of the package importPath ("os" and Getenv in os.Getenv).
// The stack holds the nodes around it, outermost first.
func (s *source) uses(importPath string, visit func(name string, pos token.Pos, stack []ast.Node)) {
	local := s.localName(importPath)
	if local == "" {
		return
	}
	var stack []ast.Node
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
				visit(sel.Sel.Name, sel.Pos(), stack)
			}
		}
		return true
	})
}

// localName returns the name under which the file uses a package, or "".
func (s *source) localName(importPath string) string {
	for _, imp := range s.imports {
		if imp.path != importPath {
			continue
		}
		if imp.name != "" {
			return imp.name
		}
		return path.Base(importPath)
	}
	return ""
}

// function returns the name of the declared function around a node, or "".
func function(stack []ast.Node) string {
	for _, n := range stack {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f.Name.Name
		}
	}
	return ""
}

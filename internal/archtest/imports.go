package archtest

import (
	"path"
	"slices"
	"strings"
)

// matches reports whether a package's path matches one of the patterns of [row].
func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if base, ok := strings.CutSuffix(p, "/..."); ok {
			return pkg == base || strings.HasPrefix(pkg, base+"/")
		}
		if base, ok := strings.CutSuffix(p, "/*"); ok {
			return path.Dir(pkg) == base
		}
		return pkg == p
	})
}

// rowOf returns the row of a package.
func rowOf(rows []row, pkg string) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return matches(pkg, []string{r.pkg}) })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// checkImports holds a file's imports against the table.
func checkImports(rows []row, s *source) []finding {
	if !s.isGo() {
		return nil
	}
	r, ok := rowOf(rows, s.dir())
	if !ok {
		return []finding{{s.path, 0, "its package has no row in internal/archtest/table.go"}}
	}
	var found []finding
	for _, imp := range s.imports {
		switch {
		case imp.path == module || strings.HasPrefix(imp.path, module+"/"):
			if pkg := within(imp.path); !mayImport(r, s, pkg) {
				found = append(found, s.at(imp.pos, "%s may not import %s (internal/archtest/table.go)", s.dir(), pkg))
			}
		case isStandard(imp.path):
		case !mayLink(r, s, imp.path):
			found = append(found, s.at(imp.pos, "%s may not link %s (internal/archtest/table.go)", s.dir(), imp.path))
		}
	}
	return found
}

// within returns a package's path in the module, "." for its root.
func within(importPath string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/"))
}

func mayImport(r row, s *source, pkg string) bool {
	if pkg == s.dir() || matches(pkg, r.may) || matches(pkg, everywhere) {
		return true // its own path: the package's external tests
	}
	return s.isTest() && (matches(pkg, r.tests) || matches(pkg, testsEverywhere))
}

func mayLink(r row, s *source, importPath string) bool {
	ofModule := func(m string) bool { return importPath == m || strings.HasPrefix(importPath, m+"/") }
	return slices.ContainsFunc(r.others, ofModule) || s.isTest() && slices.ContainsFunc(testOthers, ofModule)
}

// isStandard reports whether an import path is one of the standard library, or "C": the first
// element of any other has a dot.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// checkBlank holds prov/all to what it is: blank imports only.
func checkBlank(s *source) []finding {
	if !s.isGo() || s.dir() != "prov/all" || s.isTest() {
		return nil
	}
	var found []finding
	for _, imp := range s.imports {
		if imp.name != "_" {
			found = append(found, s.at(imp.pos, "prov/all has blank imports only"))
		}
	}
	for _, d := range s.ast.Decls {
		if !isImport(d) {
			found = append(found, s.at(d.Pos(), "prov/all has blank imports only"))
		}
	}
	return found
}

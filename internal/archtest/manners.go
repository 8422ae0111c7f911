package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// checkEnv keeps the environment out of libraries: configuration is a struct, and a user who wants
// the environment calls a FromEnv by name.
func checkEnv(s *source) []finding {
	if !s.isGo() || s.isTest() || s.in("cmd/weft", "internal/testutil") {
		return nil
	}
	readers := map[string][]string{
		"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv"},
		"syscall": {"Getenv", "Environ"},
	}
	var found []finding
	for pkg, names := range readers {
		s.uses(pkg, func(name string, pos token.Pos, stack []ast.Node) {
			if slices.Contains(names, name) && !strings.HasPrefix(function(stack), "FromEnv") {
				found = append(found, s.at(pos, "%s.%s outside of a function FromEnv*, cmd/weft and tests", pkg, name))
			}
		})
	}
	return found
}

// maySleep lists the sleeps of product code, "file function", each with its reason.
var maySleep = map[string]string{}

// checkSleep forbids time.Sleep: a wait waits for an event. In a synctest bubble the clock is
// false and nobody sleeps, so the literal function given to synctest.Test may.
// It notes in used which exceptions it met.
func checkSleep(allowed map[string]string, used map[string]bool, s *source) []finding {
	if !s.isGo() {
		return nil
	}
	bubble := s.localName("testing/synctest")
	var found []finding
	s.uses("time", func(name string, pos token.Pos, stack []ast.Node) {
		if name != "Sleep" || inCallOf(stack, bubble, "Test") {
			return
		}
		place := s.path + " " + function(stack)
		if _, ok := allowed[place]; ok && !s.isTest() {
			used[place] = true
			return
		}
		found = append(found, s.at(pos, "time.Sleep: wait for an event, or use synctest"))
	})
	return found
}

// unused lists the exceptions that no file needs any more.
func unused(allowed map[string]string, used map[string]bool) []finding {
	var found []finding
	for place, reason := range allowed {
		if !used[place] {
			found = append(found, finding{"internal/archtest/manners.go", 0, fmt.Sprintf("an exception without a sleep: %s (%s)", place, reason)})
		}
		if reason == "" {
			found = append(found, finding{"internal/archtest/manners.go", 0, "an exception without a reason: " + place})
		}
	}
	return found
}

// inCallOf reports whether one of the nodes is a call of pkg.name.
func inCallOf(stack []ast.Node, pkg, name string) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != name {
			return false
		}
		id, ok := sel.X.(*ast.Ident)
		return ok && pkg != "" && id.Name == pkg
	})
}

// word is something that must not stand in the tree.
type word struct {
	is     *regexp.Regexp
	reason string
	goOnly bool // in comments of Go files; else in all text
}

// words are written in pieces, so that this file passes its own rule.
var words = []word{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`), "unfinished work is finished, or an issue", false},
	{regexp.MustCompile(`(?i)\b(for` + ` now|not` + ` implemented yet|unimple` + `mented)\b`), "a comment says what is, not what may come", true},
	{regexp.MustCompile(`(/wo` + `rk/|/ro` + `ot/|/fa` + `rm/|/home/[a-z])`), "a path of one machine", false},
	{regexp.MustCompile(`<<<<` + `<<< |>>>>` + `>>> `), "a merge that was not finished", false},
}

// checkWords looks for words that have no place in the tree.
func checkWords(s *source) []finding {
	var found []finding
	n := 0
	for text := range strings.Lines(string(s.text)) {
		n++
		for _, w := range words {
			m := w.is.FindString(text)
			if m == "" || w.goOnly && !(s.isGo() && strings.Contains(text, "//")) {
				continue
			}
			found = append(found, finding{s.path, n, fmt.Sprintf("%q: %s", strings.TrimSpace(m), w.reason)})
		}
	}
	return found
}

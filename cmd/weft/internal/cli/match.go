package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/weft-fabric/weft/internal/suggest"
	"github.com/weft-fabric/weft/step"
)

// noSlash makes path.Match treat the slash, which is in many names of ADIOS2, as
// any other character.
var noSlash = strings.NewReplacer("/", "\x00")

// matches reports whether a variable's name is p, or matches it as a pattern.
func matches(p, name string) bool {
	if p == name {
		return true
	}
	ok, err := path.Match(noSlash.Replace(p), noSlash.Replace(name))
	return err == nil && ok
}

// sayMissing tells of names that are not in the first step, lest a misspelt one
// shows at the end of a long stream only.
func (d *dumper) sayMissing(st *step.Step) {
	for _, p := range d.opt.vars {
		if !d.found[p] {
			fmt.Fprintf(d.env.Stderr, "weft: no variable %s in step %d%s\n", quoted(p), st.Number(), meant(p, st))
		}
	}
}

// sumUp tells of names that were in no step.
func (d *dumper) sumUp(live bool) {
	for _, p := range d.opt.vars {
		if d.found[p] {
			continue
		}
		d.bad = true
		switch {
		case d.steps == 1: // sayMissing has said it
		case d.all && (!live || d.first == 0):
			fmt.Fprintf(d.env.Stderr, "weft: no variable %s in any step\n", quoted(p))
		default:
			fmt.Fprintf(d.env.Stderr, "weft: no variable %s in the %d steps that were read\n", quoted(p), d.steps)
		}
	}
}

func quoted(name string) string { return `"` + printable(name) + `"` }

// meant returns a question for the name that a misspelt one may stand for.
func meant(p string, st *step.Step) string {
	var names []string
	for _, v := range st.Variables() {
		names = append(names, v.Name())
	}
	if near := nearName(p, names); near != "" {
		return "; did you mean " + printable(near) + "?"
	}
	if parts := strings.Split(p, ","); len(parts) > 1 {
		for _, part := range parts {
			if _, ok := st.Variable(part); ok {
				return "; give -v once for each variable"
			}
		}
	}
	return ""
}

// nearName returns the name that is like p: but for case, for the folders in
// front, or for a few letters.
func nearName(p string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(n, p) {
			return n
		}
	}
	for _, n := range names {
		if strings.HasSuffix(n, "/"+p) || strings.HasSuffix(p, "/"+n) {
			return n
		}
	}
	return suggest.Nearest(p, names)
}

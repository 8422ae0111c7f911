package zoo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Check says what must be in a step that somebody read, and compares.
type Check struct {
	Ranks int    // of the writer; 0 means 1
	From  Source // who wrote
	// ADIOS2Reader: who read was ADIOS2, which cannot read some lines (see
	// [Var.WeftReads]); their variables must then be left out.
	ADIOS2Reader bool
	// Prefixes, if any, limit the variables to names with one of them.
	Prefixes []string
	// AttributesMayMiss: a reader that came late to an ADIOS2 stream may see
	// fewer attributes.
	AttributesMayMiss bool
	// NoAttributes: the writer was told to write none.
	NoAttributes bool
}

// maxReports bounds the length of an error.
const maxReports = 20

// Line decodes one line of JSON and compares it; see [Check.Step].
func (c Check) Line(line []byte) (step int, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var got map[string]any
	if err := dec.Decode(&got); err != nil {
		return 0, fmt.Errorf("zoo: not a JSON object: %w: %.80q", err, line)
	}
	return c.Step(got)
}

// Step compares one step, decoded with UseNumber, with the table, all of it:
// nothing may miss, nothing may be there besides. It takes the step number from
// got and returns it. Numbers are compared as numbers of their type, floats bit
// for bit (any NaN is like any other).
func (c Check) Step(got map[string]any) (step int, err error) {
	num, ok := got["step"].(json.Number)
	if !ok {
		return 0, fmt.Errorf("zoo: no step number in %.80q", fmt.Sprint(got))
	}
	n, err := strconv.Atoi(num.String())
	if err != nil || n < 0 {
		return 0, fmt.Errorf("zoo: step number %q", num)
	}
	want := ExpectJSON(n, max(c.Ranks, 1), c.From)
	c.restrict(want)
	d := differ{}
	d.objects("variable", got["variables"], want["variables"], false)
	d.objects("attribute", got["attributes"], want["attributes"], c.AttributesMayMiss)
	return n, d.err(n)
}

func (c Check) restrict(want map[string]any) {
	variables := want["variables"].(map[string]any)
	for _, v := range Vars(max(c.Ranks, 1)) {
		if v.WeftReads && c.ADIOS2Reader || !c.Wants(v.Name) {
			delete(variables, v.Name)
		}
	}
	if c.NoAttributes {
		want["attributes"] = map[string]any{}
	}
}

// Wants reports whether the check covers a variable of this name.
func (c Check) Wants(name string) bool {
	return len(c.Prefixes) == 0 || slices.ContainsFunc(c.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// differ collects differences.
type differ struct{ reports []error }

func (d *differ) report(format string, args ...any) {
	d.reports = append(d.reports, fmt.Errorf(format, args...))
}

func (d *differ) err(step int) error {
	if len(d.reports) == 0 {
		return nil
	}
	n := len(d.reports)
	return fmt.Errorf("zoo: step %d: %d differences:\n%w", step, n, errors.Join(d.reports[:min(n, maxReports)]...))
}

// objects compares maps of name to description.
func (d *differ) objects(what string, got, want any, mayMiss bool) {
	g, ok := got.(map[string]any)
	if !ok {
		d.report("no %ss, but a %T", what, got)
		return
	}
	w := want.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if _, ok := w[name]; !ok {
			d.report("%s %q must not be there: %.80q", what, name, fmt.Sprint(g[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		seen, ok := g[name]
		switch {
		case ok:
			d.description(fmt.Sprintf("%s %q", what, name), seen, w[name].(map[string]any))
		case !mayMiss:
			d.report("%s %q is missing", what, name)
		}
	}
}

// description compares one variable or attribute.
func (d *differ) description(where string, got any, want map[string]any) {
	g, ok := got.(map[string]any)
	if !ok {
		d.report("%s is a %T", where, got)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		typ, _ := want["type"].(string)
		if diff := compare(g[key], want[key], typeUnder(key, typ)); diff != nil {
			d.report("%s: %s%s is %.200s, must be %.200s", where, key, diff.path, fmt.Sprint(diff.got), fmt.Sprint(diff.want))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g)) {
		if _, ok := want[key]; !ok {
			d.report("%s: %s must not be there", where, key)
		}
	}
}

// difference is the first place where two trees differ; nil is none.
type difference struct {
	path      string
	got, want any
}

func (d *difference) under(path string) *difference {
	if d != nil {
		d.path = path + d.path
	}
	return d
}

// compare compares two trees of JSON with elements of type typ.
func compare(got, want any, typ string) *difference {
	here := &difference{"", got, want}
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return here
		}
		for i := range w {
			if d := compare(g[i], w[i], typ); d != nil {
				return d.under(fmt.Sprintf("[%d]", i))
			}
		}
		return nil
	case map[string]any: // a block of a local array
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return here
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if d := compare(g[key], w[key], typeUnder(key, typ)); d != nil {
				return d.under("." + key)
			}
		}
		return nil
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(g, w, typ) {
			return nil
		}
		return here
	}
	if got != want {
		return here
	}
	return nil
}

// typeUnder: dimensions and ranks are integers whatever the elements are.
func typeUnder(key, typ string) string {
	if key == "data" || key == "value" || key == "blocks" {
		return typ
	}
	return ""
}

// sameNumber compares floats as values of their type, all else as text.
func sameNumber(got, want json.Number, typ string) bool {
	bits := 0
	switch typ {
	case "float", "float complex":
		bits = 32
	case "double", "double complex", "long double":
		bits = 64
	}
	if bits == 0 {
		return got == want
	}
	g, err1 := strconv.ParseFloat(got.String(), bits)
	w, err2 := strconv.ParseFloat(want.String(), bits)
	return err1 == nil && err2 == nil && math.Float64bits(g) == math.Float64bits(w)
}

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/suggest"
)

// providerFilter says which providers are shown: those that are named, or, with a ^ before the names, all others. Several
// names stand apart by ; or a comma. It is the form of libfabric's variable FI_PROVIDER.
type providerFilter struct {
	text  string
	names []string // none: all are shown
	not   bool
}

func parseFilter(s string) (providerFilter, error) {
	f := providerFilter{text: s}
	if s == "" {
		return f, nil
	}
	list, not := strings.CutPrefix(s, "^")
	f.not = not
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ';' || r == ',' }) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, "^") {
			return f, usagef("filter %q: one ^ in front is of all names", s)
		}
		if name != "" && !slices.Contains(f.names, name) {
			f.names = append(f.names, name)
		}
	}
	if len(f.names) == 0 {
		return f, usagef("filter %q names no provider", s)
	}
	return f, nil
}

// apply takes the providers out that are not shown. A name that is none is an error, also behind a ^: it was meant to do something.
func (f *providerFilter) apply(infos []fabric.Info) ([]fabric.Info, error) {
	if len(f.names) == 0 {
		return infos, nil
	}
	var all []string
	for i := range infos {
		if name := infos[i].Provider; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range f.names {
		if slices.Contains(all, name) {
			continue
		}
		hint := ""
		if near := suggest.Nearest(name, all); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, usagef("no provider %q is linked, there are: %s%s", name, strings.Join(all, ", "), hint)
	}
	kept := slices.DeleteFunc(slices.Clone(infos), func(i fabric.Info) bool { return slices.Contains(f.names, i.Provider) == f.not })
	if len(kept) == 0 {
		return nil, usagef("filter %q leaves no provider", f.text)
	}
	return kept, nil
}

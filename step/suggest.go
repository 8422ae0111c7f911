package step

import (
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/internal/suggest"
)

// hint returns a hint for a name that is not among n names, or "": names
// that differ in case, by the folder in front, or by one or two letters.
func hint(name string, n int, at func(int) string) string {
	const most = 3
	var found []string
	for i := 0; i < n && len(found) < most; i++ {
		if s := at(i); similar(name, s) {
			found = append(found, fmt.Sprintf("%q", s))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (is it " + strings.Join(found, " or ") + "?)"
}

// similar compares names of any number and length: the distance ends early.
func similar(a, b string) bool {
	if strings.EqualFold(a, b) || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a) {
		return true
	}
	most := min(2, len(a)/4+1)
	return len(a) >= 3 && suggest.Distance(a, b, most) <= most
}

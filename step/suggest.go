package step

import (
	"fmt"
	"strings"
)

// suggest returns a hint for a name that is not among n names, or "": names
// that differ in case, by the folder in front, or by one or two letters.
func suggest(name string, n int, at func(int) string) string {
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

func similar(a, b string) bool {
	if strings.EqualFold(a, b) || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a) {
		return true
	}
	const longest = 64 // comparing takes the product of the lengths
	if len(a) < 3 || len(a) > longest || len(b) > longest {
		return false
	}
	return distance(a, b) <= len(a)/4+1 && distance(a, b) <= 2
}

// distance returns the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := before
			if a[i] != b[j] {
				d = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

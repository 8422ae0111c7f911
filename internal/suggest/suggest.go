// Package suggest finds what a user may have meant by a misspelt name. It is
// pure and safe for concurrent use.
package suggest

import "strings"

// Nearest returns the candidate with the smallest edit distance to name,
// ignoring case, or "" if none is near: more than a third of its letters differ.
func Nearest(name string, candidates []string) string {
	best, bestDistance := "", 0
	for _, c := range candidates {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d > max(1, len(c)/3) {
			continue
		}
		if best == "" || d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

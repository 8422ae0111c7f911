// Package suggest finds what a user may have meant by a misspelt name. It knows
// nothing of what the names are for, has no dictionary and keeps no state; its
// functions are safe for concurrent use.
package suggest

import "strings"

// Nearest returns the candidate with the smallest edit distance to name,
// ignoring case, or "" if none is near: more than a third of its letters differ.
// Of equally near ones the first wins.
func Nearest(name string, candidates []string) string {
	best, bestDistance := "", 0
	for _, c := range candidates {
		most := max(1, len(c)/3)
		if best != "" {
			most = min(most, bestDistance-1) // only something nearer is of interest
		}
		if d := Distance(strings.ToLower(name), strings.ToLower(c), most); d <= most {
			best, bestDistance = c, d
		}
	}
	return best
}

// Distance returns the Levenshtein distance of a and b in bytes, the number of
// bytes to insert, delete or replace, or most+1 if that is more than most. Names
// may come from outside, and there may be very many of them: the work is that of
// len(a) times most, and ends as soon as the answer is known.
func Distance(a, b string, most int) int {
	if most < 0 || abs(len(a)-len(b)) > most {
		return most + 1
	}
	// row[j] is the distance of a[:i] and b[:j]. Entries further than most from
	// the diagonal cannot be small enough and count as most+1.
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = min(j, most+1)
	}
	for i := 1; i <= len(a); i++ {
		lo, hi := max(1, i-most), min(len(b), i+most)
		diagonal := row[lo-1]
		row[lo-1] = min(i, most+1)
		if hi == i+most {
			row[hi] = most + 1
		}
		least := row[lo-1]
		for j := lo; j <= hi; j++ {
			d := diagonal
			if a[i-1] != b[j-1] {
				d = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
	}
	return min(row[len(b)], most+1)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

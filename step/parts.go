package step

import (
	"cmp"
	"slices"
)

// sortParts restores the order of the blocks, in which later ones win.
func sortParts(parts []overlap) {
	slices.SortFunc(parts, func(a, b overlap) int { return cmp.Compare(a.block, b.block) })
}

package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// modeLearned is the preload mode in whose first step a writer learns what to push
// from then on (docs/wire/sst.md §8.3).
const modeLearned = 2

// mergeable reports whether a step that is not delivered says no more than the one
// before it, which is not delivered either: one message can stand for both. One
// that brings learned preload says more, for its step may be the one in which the
// writer learns.
func mergeable(last, m *sstmsg.TimestepMetadata) bool {
	return bare(m) && (m.PreloadMode != modeLearned || last.PreloadMode == modeLearned)
}

// bare reports whether a message has neither formats nor attributes.
func bare(m *sstmsg.TimestepMetadata) bool {
	for _, a := range m.Attributes {
		if a.Data.Len() > 0 {
			return false
		}
	}
	return len(m.Formats) == 0
}

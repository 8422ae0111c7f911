package sst

import "github.com/weft-fabric/weft/sst/internal/cp"

// writtenCount adds up the bytes of the steps that went out, at rank 0, from
// what passes between the ranks. The writer's mu guards it.
type writtenCount struct {
	total uint64
	try   int64  // that contributions count for
	bytes uint64 // of these
}

// contributed takes a rank's share of a step in. One that comes too late, for a
// step that was given up, does not count.
func (c *writtenCount) contributed(m *cp.Contribute) {
	if m.Try != c.try {
		return
	}
	for _, n := range m.Bytes {
		c.bytes += n
	}
}

// told looks at what the leader tells the ranks: a verdict ends the try.
func (c *writtenCount) told(m cp.Message) {
	v, ok := m.(*cp.Verdict)
	if !ok {
		return
	}
	if v.Outcome == cp.Published {
		c.total += c.bytes
	}
	c.try, c.bytes = v.Try+1, 0
}

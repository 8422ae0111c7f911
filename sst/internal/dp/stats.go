package dp

// RankStats counts what came from one writer rank. Bytes are those of data
// blocks, without headers.
type RankStats struct {
	Requests   int64  // sent
	Replied    uint64 // bytes that came in answer to requests
	Pushes     int64  // blocks that came by themselves
	Pushed     uint64 // their bytes
	Duplicates int64  // of these, blocks that were here already, or whose step was over

	// Of the plane Native.
	Views  int64  // of its memory that were handed out
	Viewed uint64 // their bytes
	Copied uint64 // bytes that were copied out of its memory, or lent to be copied from
}

// Stats returns the counts of every writer rank; before Attach there is none.
func (e *Evpath) Stats() []RankStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]RankStats, len(e.writers))
	for i := range list {
		if s := e.stats[i]; s != nil {
			list[i] = *s
		}
	}
	return list
}

// statsOf returns the counts of a rank. The caller holds mu.
func (e *Evpath) statsOf(rank int) *RankStats {
	s := e.stats[rank]
	if s == nil {
		s = &RankStats{}
		e.stats[rank] = s
	}
	return s
}

// countPush counts a block that was pushed. The caller holds mu.
func (e *Evpath) countPush(rank int, size uint64, unused bool) {
	s := e.statsOf(rank)
	s.Pushes++
	s.Pushed += size
	if unused {
		s.Duplicates++
	}
}

package mrcache

// Stats is what a cache did since it was made, and keeps now. Misses are counted for what is kept.
type Stats struct {
	Hits uint64 // registrations that were there and are released, also just in time (Raced)

	New         uint64 // misses: nothing was known of the memory,
	Grown       uint64 // less of it was,
	Flushed     uint64 // it was known before a Flush of the arbiter,
	DeadHeap    uint64 // it had died: an object of the Go heap,
	DeadOwner   uint64 // memory with an owner, arenas among them,
	DeadMonitor uint64 // memory that the monitor saw go

	NoMonitor, NoAnswer, Disabled, Full, Unsure uint64 // registrations for one operation, by reason

	Raced   uint64 // registered in vain: another goroutine was faster
	Evicted uint64 // let go to make room
	Failed  uint64 // not let go by the registrar

	Entries    int    // that are known now
	InUse      int    // of these
	Pinned     uint64 // bytes of pages that are registered now: kept, dead and not yet given back, and for one operation
	MostPinned uint64
}

// Stats is a snapshot. It looks at each entry.
func (c *Cache[H]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	inUse := 0
	for _, e := range c.ring {
		if e == nil {
			continue
		}
		c.countHits(e)
		if e.state.Load()&users != 0 {
			inUse++
		}
	}
	s := c.stats
	s.Entries, s.InUse = len(c.ring)-len(c.free), inUse
	return s
}

// countHits adds what is new of the hits that an entry has counted itself. The caller has mu.
func (c *Cache[H]) countHits(e *entry[H]) {
	c.stats.Hits += e.newHits()
}

// countLate counts the hits of an entry that Stats does not find any more.
func (c *Cache[H]) countLate(e *entry[H]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countHits(e)
}

// count counts a miss.
func (s *Stats) count(why miss) {
	*[numMisses]*uint64{&s.New, &s.Grown, &s.Flushed, &s.DeadHeap, &s.DeadOwner, &s.DeadMonitor}[why]++
}

// countOnce counts a registration for one operation.
func (c *Cache[H]) countOnce(why Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.stats
	*[numReasons]*uint64{NoMonitor: &s.NoMonitor, NoAnswer: &s.NoAnswer, Disabled: &s.Disabled, Full: &s.Full, Unsure: &s.Unsure}[why]++
}

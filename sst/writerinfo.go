package sst

import (
	"cmp"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// WriterInfo tells what a writer serves, and to whom. Rank 0 of a cohort knows
// all of it; what the others know of the whole stream is said with the field.
type WriterInfo struct {
	Path  string // of the contact file
	Addr  string // published in it, or this rank's own
	Rank  int    // of this process in its cohort
	Size  int    // processes of the cohort
	Base  int    // first writer rank of this process
	Own   int    // writer ranks of this process
	Ranks int    // writer ranks of the stream
	Plane string // data plane that readers get

	NextStep uint64 // number of the next step
	Held     int    // steps that are kept, for a reader or in reserve; other ranks: steps in memory here
	Bytes    uint64 // memory of these steps in this process, and of the step being filled
	Queued   uint64 // rank 0: bytes of the kept steps, of all ranks
	Dropped  int64  // rank 0: steps that QueueFullPolicy Discard has dropped

	RankBytes []uint64 // rank 0: bytes of the kept steps, by writer rank
	Readers   []AttachedReader

	Policy WriterPolicy
}

// WriterPolicy is what is in effect, defaults filled in.
type WriterPolicy struct {
	Rendezvous      int
	QueueLimit      int    // steps; 0: none
	QueueLimitBytes uint64 // 0: none
	QueueFullPolicy string
	BlockAt         string
	Reserve         int
	FirstPrecious   bool
	Distribution    string
	Registration    string
	Preload         bool   // readers that ask for it are pushed whole steps
	LagNotice       int    // steps; 0: never
	LagLimit        int    // steps; 0: never
	WarnBytes       uint64 // 0: never
}

// AttachedReader is one reader cohort of a writer.
type AttachedReader struct {
	Addr    string // of its rank 0
	Ranks   int
	Release string // the message variants it gets; of Weft, other ranks than 0 know only that
	Plane   string // that it reads by
	Served  uint64 // bytes of data that this process has sent to it

	// The rest is known at rank 0.

	Active    bool   // its opening is over
	Observer  bool   // it only looks: nobody waits for it
	Sent      int64  // steps handed to it
	Released  int64  // steps that it has given back
	Dropped   int64  // steps discarded while it was there
	Lag       int64  // steps that it is behind
	Held      int    // steps that are kept for it
	HeldBytes uint64 // of them, of all ranks
}

// Info returns a snapshot. It is cheap: nothing waits for it.
func (w *Writer) Info() WriterInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	info := WriterInfo{
		Path: w.path, Addr: w.session.Addr(), Rank: w.cfg.Cohort.Rank(), Size: w.cfg.Cohort.Size(),
		Base: w.base, Own: w.cfg.Ranks, Ranks: w.total, Plane: planeEvpath,
		NextStep: uint64(w.member.NextStep()), Held: len(w.steps), Policy: w.policy(),
	}
	stats := w.pool.Stats()
	info.Bytes = stats.Held - stats.Free
	if l := w.leader; l != nil {
		info.Held, info.Queued, info.Dropped, info.RankBytes = l.Held(), l.HeldBytes(), l.Dropped(), l.RankBytes()
	}
	keys := make([]readerKey, 0, len(w.readers))
	for k := range w.readers {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b readerKey) int { return cmp.Compare(a, b) })
	for _, k := range keys {
		var c cp.Counts
		if w.leader != nil {
			c = w.leader.Reader(k)
		}
		info.Readers = append(info.Readers, w.readers[k].info(c))
	}
	return info
}

// policy tells what the parameters have come to.
func (w *Writer) policy() WriterPolicy {
	p := &w.cfg.Params
	return WriterPolicy{
		Rendezvous: p.rendezvous(), QueueLimit: p.QueueLimit, QueueLimitBytes: p.QueueLimitBytes,
		QueueFullPolicy: cmp.Or(p.QueueFullPolicy, "Block"), BlockAt: cmp.Or(p.BlockAt, "EndStep"),
		Reserve: p.ReserveQueueLimit, FirstPrecious: p.FirstTimestepPrecious, Distribution: p.distribution().String(),
		Registration: cmp.Or(p.RegistrationMethod, "File"), Preload: p.SpeculativePreloadMode != "Off",
		LagNotice: p.LagNotice, LagLimit: p.LagLimit, WarnBytes: w.warn,
	}
}

// info is a reader with the counts of the leader.
func (r *attached) info(c cp.Counts) AttachedReader {
	info := AttachedReader{
		Ranks: len(r.ranks), Release: "ADIOS2", Plane: planeEvpath, Served: r.served,
		Active: c.Active, Observer: c.Observer, Sent: c.Sent, Released: c.Released, Dropped: c.Dropped,
		Lag: c.Lag, Held: c.Held, HeldBytes: c.HeldBytes,
	}
	switch {
	case r.link != nil:
		info.Addr = r.link.Info().Remote.String()
	case len(r.ranks) > 0:
		info.Addr = addrOfContact(r.ranks[0].Contact)
	}
	switch {
	case r.weft:
		info.Release = "Weft"
	case r.link != nil:
		info.Release = r.options.Release.String()
	}
	return info
}

// addrOfContact is the address in a contact string, "" if there is none.
func addrOfContact(text string) string {
	c, err := cm.ParseContact(text)
	if err != nil {
		return ""
	}
	a, err := c.Addr()
	if err != nil {
		return ""
	}
	return a.String()
}

package sst

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// WriterInfo tells what a writer serves, and to whom. Rank 0 of a cohort knows
// all of it; what the others know of the whole stream is said with the field.
type WriterInfo struct {
	Path  string `json:"path"`  // of the contact file
	Addr  string `json:"addr"`  // published in it, or this rank's own
	Rank  int    `json:"rank"`  // of this process in its cohort
	Size  int    `json:"size"`  // processes of the cohort
	Base  int    `json:"base"`  // first writer rank of this process
	Own   int    `json:"own"`   // writer ranks of this process
	Ranks int    `json:"ranks"` // writer ranks of the stream
	Plane string `json:"plane"` // data planes that are served, best first, with commas

	NextStep uint64 `json:"next_step"` // number of the next step
	Held     int    `json:"held"`      // steps that are kept, for a reader or in reserve; other ranks: steps in memory here
	Bytes    uint64 `json:"bytes"`     // memory of these steps in this process, and of the step being filled
	Queued   uint64 `json:"queued"`    // rank 0: bytes of the kept steps, of all ranks
	Written  uint64 `json:"written"`   // rank 0: bytes of all steps that went out, of all ranks
	Dropped  int64  `json:"dropped"`   // rank 0: steps that no reader got: discarded by policy, or given back and too old for the others
	Ending   bool   `json:"ending"`    // this process begins no further step

	RankBytes []uint64         `json:"rank_bytes"` // rank 0: bytes of the kept steps, by writer rank
	Readers   []AttachedReader `json:"readers"`

	Policy WriterPolicy `json:"policy"`
}

// WriterPolicy is what is in effect, defaults filled in.
type WriterPolicy struct {
	Rendezvous      int    `json:"rendezvous"`
	QueueLimit      int    `json:"queue_limit"`       // steps; 0: none
	QueueLimitBytes uint64 `json:"queue_limit_bytes"` // 0: none
	QueueFullPolicy string `json:"queue_full_policy"`
	BlockAt         string `json:"block_at"`
	Reserve         int    `json:"reserve"`
	FirstPrecious   bool   `json:"first_precious"`
	Distribution    string `json:"distribution"`
	Registration    string `json:"registration"`
	Preload         bool   `json:"preload"`    // readers that ask for it are pushed whole steps
	AskFrom         uint64 `json:"ask_from"`   // but Weft readers that wait are left to ask for blocks of so many bytes and more; 0: never
	LagNotice       int    `json:"lag_notice"` // steps; 0: never
	LagLimit        int    `json:"lag_limit"`  // steps; 0: never
	WarnBytes       uint64 `json:"warn_bytes"` // 0: never
}

// AttachedReader is one reader cohort of a writer.
type AttachedReader struct {
	Addr    string `json:"addr"` // of its rank 0
	Ranks   int    `json:"ranks"`
	Release string `json:"release"` // the message variants it gets; of Weft, other ranks than 0 know only that
	Plane   string `json:"plane"`   // that it reads by
	Carrier string `json:"carrier"` // by which its rank 0 is told of steps: "tcp" or "shm"; "" at other ranks than 0
	Served  uint64 `json:"served"`  // bytes of data that this process has sent to it

	// The rest is known at rank 0.

	Active    bool   `json:"active"`     // its opening is over
	Observer  bool   `json:"observer"`   // it only looks: nobody waits for it
	Sent      int64  `json:"sent"`       // steps handed to it
	Released  int64  `json:"released"`   // steps that it has given back
	Dropped   int64  `json:"dropped"`    // steps discarded while it was there
	Lag       int64  `json:"lag"`        // steps that it is behind
	Held      int    `json:"held"`       // steps that are kept for it
	HeldBytes uint64 `json:"held_bytes"` // of them, of all ranks
}

// Info returns a snapshot. It is cheap: nothing waits for it.
func (w *Writer) Info() WriterInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	info := WriterInfo{
		Path: w.path, Addr: w.session.Addr(), Rank: w.ranks.rank, Size: w.ranks.size,
		Base: w.base, Own: w.cfg.Ranks, Ranks: w.total, Plane: strings.Join(w.planes, ","),
		NextStep: uint64(w.member.NextStep()), Held: len(w.steps), Policy: w.policy(),
		Written: w.written.total, Ending: w.finished,
	}
	info.Bytes = w.memory.held()
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
		AskFrom:   p.askFrom(),
		LagNotice: p.LagNotice, LagLimit: p.LagLimit, WarnBytes: w.warn,
	}
}

// carrierName tells what a link goes over, "" of none.
func carrierName(l carrier.Link) string {
	if l == nil {
		return ""
	}
	if name, _, fabric := strings.Cut(l.Info().Peer, "://"); fabric {
		return name
	}
	return "tcp"
}

// info is a reader with the counts of the leader.
func (r *attached) info(c cp.Counts) AttachedReader {
	info := AttachedReader{
		Ranks: len(r.ranks), Release: "ADIOS2", Plane: cmp.Or(c.Plane, r.plane), Served: r.served,
		Active: c.Active, Observer: c.Observer, Sent: c.Sent, Released: c.Released, Dropped: c.Dropped,
		Lag: c.Lag, Held: c.Held, HeldBytes: c.HeldBytes,
	}
	switch {
	case r.link != nil:
		info.Addr = r.addr
	case len(r.ranks) > 0:
		info.Addr = addrIn(r.ranks[0].Contact)
	}
	info.Carrier = carrierName(r.out())
	switch {
	case r.weft:
		info.Release = "Weft"
	case r.link != nil:
		info.Release = r.options.Release.String()
	}
	return info
}

package sst

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/dp"
)

// ReaderInfo tells what a reader rank is attached to, and how it fares.
type ReaderInfo struct {
	Writer       string `json:"writer"`              // address of writer rank 0
	Ranks        int    `json:"ranks"`               // writer ranks
	Plane        string `json:"plane"`               // data plane in use
	PlaneWhy     string `json:"plane_why,omitempty"` // why this rank does not look at the memory of a writer rank that offers it
	Carrier      string `json:"carrier"`             // by which rank 0 is told of steps: "tcp" or "shm"; "" at other ranks, which hear of them from rank 0
	Release      string `json:"release"`             // what the handshake told of the writer's software
	Preload      bool   `json:"preload"`             // the newest step brought its blocks without requests; before the first one: we asked for that
	Learned      bool   `json:"learned"`             // the writer sends by itself what this rank reads in each step
	ColumnMajor  bool   `json:"column_major"`        // of the writer; dimensions are shown reversed
	Distribution string `json:"distribution"`        // which reader cohort gets a step: "AllToAll", "RoundRobin" or "OnDemand"
	Observer     bool   `json:"observer"`            // the writer leaves us out of its counts

	Rank int `json:"rank"` // of this reader rank
	Size int `json:"size"` // ranks of the reader

	FirstStep  uint64        `json:"first_step"` // number of the first step this reader gets; certain once one has come
	Taken      int64         `json:"taken"`      // steps that BeginStep has handed out here
	Skipped    int64         `json:"skipped"`    // steps dropped by the writer, or passed over
	Queued     int           `json:"queued"`     // steps that wait here, or, on rank 0, at the cohort
	Held       int           `json:"held"`       // steps that are open here, retained ones included
	Retained   int           `json:"retained"`   // of these, those that were retained
	Unreleased int           `json:"unreleased"` // on rank 0: steps that some rank has, and that the writer keeps for us
	Lag        int64         `json:"lag"`        // steps between the newest one known here and the last one ended here
	Waited     time.Duration `json:"waited_ns"`  // time that BeginStep has waited for steps

	Writers []WriterRank `json:"writers"` // one for each writer rank
}

// WriterRank counts what came from one writer rank to one reader rank, or was looked
// at, in bytes of data blocks.
type WriterRank struct {
	Addr       string `json:"addr"`  // where its data is asked for
	Route      string `json:"route"` // by which its data comes: "shm" (a look at its memory) or "tcp"
	Requests   int64  `json:"requests"`
	Replied    uint64 `json:"replied"`    // bytes in answer to requests
	Pushes     int64  `json:"pushes"`     // blocks that came by themselves
	Pushed     uint64 `json:"pushed"`     // bytes of these
	Duplicates int64  `json:"duplicates"` // blocks that came by themselves and were of no use
	Views      int64  `json:"views"`      // of its memory
	Viewed     uint64 `json:"viewed"`     // bytes of these
	Copied     uint64 `json:"copied"`     // bytes copied out of its memory
}

// readerCounts is what the shell counts. The reader's mu guards it.
type readerCounts struct {
	taken   int64
	newest  int64 // number of the newest step, and 1
	ended   int64 // number of the newest step that was ended here, and 1
	pushed  bool  // the newest step taken was preloaded
	waiting time.Duration
}

// saw notes how a step comes that is taken.
func (c *readerCounts) saw(m *sstmsg.TimestepMetadata) {
	c.pushed = m.PreloadMode == dp.ModeSpeculative
}

// came notes that a step is known.
func (c *readerCounts) came(number int64) { c.newest = max(c.newest, number+1) }

// waited takes in that BeginStep has waited.
func (r *Reader) waited(took time.Duration) {
	r.eager.end(took)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.waiting += took
}

// Info returns a snapshot. It is safe for concurrent use, after Close too.
func (r *Reader) Info() ReaderInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.counts
	info := ReaderInfo{
		Writer: r.peerLocked(), Ranks: len(r.response.CP), Plane: r.agreed, Carrier: carrierName(r.controlLink(0)), Release: r.release,
		Preload: r.preloading(), Learned: r.plane.Learned(), ColumnMajor: r.response.Params.IsRowMajor == 0,
		Distribution: distribution(r.response.Params.StepDistributionMode), Observer: r.cfg.Observer && r.weft,
		Rank: r.ranks.rank, Size: r.ranks.size, FirstStep: uint64(r.member.FirstStep()), Taken: c.taken, Skipped: r.member.Skipped(),
		Queued: r.member.Queued(), Held: len(r.steps), Waited: c.waiting, Writers: r.writerRanks(),
	}
	if r.apart != nil {
		info.PlaneWhy = r.apart.Error()
	}
	for _, h := range r.steps {
		if h.retained {
			info.Retained++
		}
	}
	if first := r.member.FirstStep(); c.newest > 0 {
		info.Lag = max(0, c.newest-max(c.ended, first))
	}
	if r.leader != nil {
		info.Queued += r.leader.Queued()
		info.Unreleased = r.leader.Held()
		info.Skipped = max(info.Skipped, r.leader.Skipped())
	}
	return info
}

// preloading reports whether blocks come without being asked for, as far as we
// know. The caller holds mu.
func (r *Reader) preloading() bool {
	if r.counts.taken == 0 {
		return r.cfg.Params.preloads(r.ranks.size)
	}
	return r.counts.pushed || r.plane.Learned()
}

// mayBePushed reports whether a Weft writer may push a later step although it did
// not push the newest: it decides for each. The caller holds mu.
func (r *Reader) mayBePushed() bool {
	return r.weft && r.cfg.Params.preloads(r.ranks.size) && r.response.Params.SpeculativePreloadMode != preloadMode("Off")
}

// writerRanks lists the counts of the plane. The caller holds mu.
func (r *Reader) writerRanks() []WriterRank {
	list := make([]WriterRank, 0, len(r.response.CP))
	for rank, s := range r.plane.Stats() {
		list = append(list, WriterRank{
			Addr: addrIn(r.response.CP[rank].Contact), Route: r.routeTo(rank), Requests: s.Requests, Replied: s.Replied,
			Pushes: s.Pushes, Pushed: s.Pushed, Duplicates: s.Duplicates,
			Views: s.Views, Viewed: s.Viewed, Copied: s.Copied,
		})
	}
	return list
}

// routeTo says how a writer rank's data comes. The caller holds mu.
func (r *Reader) routeTo(rank int) string {
	if r.routes != nil && rank < len(r.routes.list) && r.routes.list[rank] != nil {
		return "shm"
	}
	return "tcp"
}

// addrIn returns the address in a contact, "" if there is none.
func addrIn(text string) string {
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

func distribution(mode int64) string { return word(mode, "AllToAll", "RoundRobin", "OnDemand") }

// word names a value of a parameter that is one of several words.
func word(v int64, words ...string) string {
	if v >= 0 && v < int64(len(words)) {
		return words[v]
	}
	return fmt.Sprintf("unknown (%d)", v)
}

package sst

import (
	"cmp"
	"slices"

	"github.com/weft-fabric/weft/sst/internal/cp"
)

// WriterInfo tells what a writer serves, and to whom.
type WriterInfo struct {
	Path     string           `json:"path"` // of the contact file
	Addr     string           `json:"addr"` // published in it
	Ranks    int              `json:"ranks"`
	Plane    string           `json:"plane"`     // data plane that readers get
	NextStep uint64           `json:"next_step"` // number of the next step
	Held     int              `json:"held"`      // steps that some reader has not released
	Bytes    uint64           `json:"bytes"`     // data of these steps, and of the step being filled
	Written  uint64           `json:"written"`   // data of all steps that were ended
	Dropped  int64            `json:"dropped"`   // steps that QueueFullPolicy Discard has dropped
	Ending   bool             `json:"ending"`    // no step follows: readers take what is there
	Readers  []AttachedReader `json:"readers"`
}

// AttachedReader is one reader cohort of a writer.
type AttachedReader struct {
	Addr     string `json:"addr"` // of its rank 0
	Ranks    int    `json:"ranks"`
	Release  string `json:"release"` // the message variants it gets
	Active   bool   `json:"active"`  // its opening is over
	Sent     int64  `json:"sent"`    // steps handed to it
	Released int64  `json:"released"`
	Dropped  int64  `json:"dropped"` // steps discarded while it was there
	Held     int    `json:"held"`    // steps it has not released
}

// Info returns a snapshot.
func (w *Writer) Info() WriterInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	info := WriterInfo{
		Path: w.path, Addr: w.session.Addr(), Ranks: w.cfg.Ranks, Plane: planeEvpath,
		NextStep: uint64(w.machine.NextStep()), Held: w.machine.Held(), Dropped: w.machine.Dropped(),
		Written: w.written, Ending: w.finished,
	}
	stats := w.pool.Stats()
	info.Bytes = stats.Held - stats.Free
	keys := make([]readerKey, 0, len(w.readers))
	for k := range w.readers {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b readerKey) int { return cmp.Compare(a, b) })
	for _, k := range keys {
		info.Readers = append(info.Readers, w.readers[k].info(w.machine.Reader(k)))
	}
	return info
}

func (r *attached) info(c cp.Counts) AttachedReader {
	release := r.options.Release.String()
	if r.options.Weft {
		release = "Weft"
	}
	return AttachedReader{
		Addr: r.link.Info().Remote.String(), Ranks: len(r.msg.CP), Release: release, Active: c.Active,
		Sent: c.Sent, Released: c.Released, Dropped: c.Dropped, Held: c.Held,
	}
}

package sst

// ReaderInfo tells what a reader is attached to.
type ReaderInfo struct {
	Writer      string // address of writer rank 0
	Ranks       int    // writer ranks
	Plane       string // data plane in use
	Release     string // what the handshake told of the writer's software
	Preload     bool   // we asked for whole steps, without requests; the writer may decline
	ColumnMajor bool   // of the writer; dimensions are shown reversed
	FirstStep   uint64 // number of the first step this reader gets; certain once one has come
	Queued      int    // steps that wait here
	Skipped     int64  // steps dropped by the writer, or passed over
}

// Info returns a snapshot.
func (r *Reader) Info() ReaderInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.link.Info()
	return ReaderInfo{
		Writer: info.Remote.String(), Ranks: len(r.response.CP), Plane: r.machine.Plane(), Release: info.Release.String(),
		Preload: r.cfg.Params.preloads(1), ColumnMajor: r.response.Params.IsRowMajor == 0,
		FirstStep: uint64(r.machine.FirstStep()), Queued: r.machine.Queued(), Skipped: r.machine.Skipped(),
	}
}

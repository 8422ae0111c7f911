package sst

import "time"

// seeOutFor bounds how long End sees the data of its step out.
const seeOutFor = 10 * time.Millisecond

// isFull reports whether the next step will have to wait for a reader. The caller
// holds mu.
func (w *Writer) isFull() bool {
	p := &w.cfg.Params
	return p.QueueLimit > 0 && len(w.steps) >= p.QueueLimit && p.QueueFullPolicy != "Discard" && len(w.readers) > 0
}

// seeOut waits until the data that were pushed are with the kernel, and gives up the
// use of d that it was called with.
//
// When the queue is full, the program cannot get ahead of its readers anyway; what it
// would compute now, it computes while they work on the step. If it began at once, it would
// take the processor from the very goroutine that sends to them, and all would wait for that.
func (d *stepData) seeOut() {
	defer d.release()
	m := d.memory
	m.awaited.Store(true)
	defer m.awaited.Store(false)
	var over <-chan time.Time
	for d.uses.Load() > 2 { // the step's own, and ours
		if over == nil {
			t := time.NewTimer(seeOutFor)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-m.went:
		case <-over:
			return
		}
	}
}

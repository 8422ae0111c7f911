package sst

import "time"

// seeOutFor bounds how long End sees the data of its step out.
const seeOutFor = 10 * time.Millisecond

// seesOut reports whether End sees a step out: not one that readers are done with
// already, whose memory is free, or that of another step. The caller holds mu.
func (w *Writer) seesOut(st *openStep) bool { return w.isFull() && w.steps[st.number] == st.data }

// isFull reports whether the next step will have to wait for a reader. The caller
// holds mu.
func (w *Writer) isFull() bool {
	p := &w.cfg.Params
	return p.QueueLimit > 0 && len(w.steps) >= p.QueueLimit && p.QueueFullPolicy != "Discard" && w.heeds()
}

// heeds reports whether there is a reader that the queue waits for. The caller holds
// mu.
func (w *Writer) heeds() bool {
	for _, r := range w.readers {
		if !r.observer {
			return true
		}
	}
	return false
}

// askFor is how long seeOut waits for readers to ask for data, if they asked for as
// much of the step before within that time.
const askFor = time.Millisecond

// manyBytes is from where on answers take time, in bytes.
const manyBytes = 1 << 20

// expects returns how many bytes of a step that is out readers will ask for at once,
// as far as the step before tells. The caller holds mu.
func (w *Writer) expects(d *stepData) int64 {
	if n := w.memory.asked.Load(); n >= manyBytes && !d.pushed {
		return n
	}
	return 0
}

// seeOut waits until the data that were pushed, and the bytes that readers are
// expected to ask for, are with the kernel, or the step is given back. It gives up
// the use of d that it was called with.
//
// When the queue is full, the program cannot get ahead of its readers anyway; what it
// would compute now, it computes while they work on the step. If it began at once, it would
// take the processor from the very goroutine that sends to them, and all would wait for that.
func (d *stepData) seeOut(expected int64) {
	defer d.release()
	m := d.memory
	m.awaited.Store(true)
	defer m.awaited.Store(false)
	var over, late *time.Timer
	for {
		asked := d.asked.Load() >= expected || d.retired.Load()
		if asked && d.uses.Load() <= 2 { // the step's own, and ours
			return
		}
		if over == nil {
			over, late = time.NewTimer(seeOutFor), time.NewTimer(askFor)
			defer over.Stop()
			defer late.Stop()
		}
		select {
		case <-m.went:
		case <-late.C:
			expected = 0
		case <-over.C:
			return
		}
	}
}

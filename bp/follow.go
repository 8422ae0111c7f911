package bp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// refresh parses what was added to the index, and counts the steps whose
// metadata is there. Caller holds r.mu.
func (r *Reader) refresh() error {
	if r.closed {
		return fmt.Errorf("bp: %s: %w", r.path, ErrClosed)
	}
	// The mark first: a writer that clears it has written its last record
	// before, so the records that are read now are all.
	active, err := r.idx.active()
	if err == nil {
		r.active = active
		err = r.idx.update()
	}
	if err == nil && r.whole < len(r.idx.steps) {
		err = r.countWhole()
	}
	if err != nil {
		return fmt.Errorf("bp: %s: %w", r.path, err)
	}
	return nil
}

// countWhole advances r.whole. File systems may show the index record of a
// step before its metadata.
func (r *Reader) countWhole() error {
	if r.meta == nil {
		f, err := r.dir.Open(metaName)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		r.meta = f
	}
	size, err := r.meta.Size()
	if err != nil {
		return err
	}
	for r.whole < len(r.idx.steps) {
		ref := r.idx.steps[r.whole]
		if ref.metaPos+ref.metaLen > uint64(size) {
			break
		}
		r.whole++
	}
	return nil
}

// openFormats opens mmd.0 when a step first needs it: a dataset without steps
// may not have it yet.
func (r *Reader) openFormats() error {
	if r.formats != nil {
		return nil
	}
	f, err := r.dir.Open(formatsName)
	if err != nil {
		return err
	}
	r.fmtsFile, r.formats = f, &formats{tail: growing{f: f}, known: map[[12]byte]error{}}
	return nil
}

// await waits until step n is there, or until there will be no more. A
// flattened dataset is there when its writer has closed it.
func (r *Reader) await(ctx context.Context, n int) error {
	w := r.newWait(false)
	for {
		r.mu.Lock()
		err := r.refresh()
		enough := n < r.whole && !r.flat()
		over := r.idx.damage != nil || !r.active
		steps := r.whole
		r.mu.Unlock()
		if err != nil || enough || over {
			return err
		}
		if w.expired() {
			return &UnfinishedError{Path: r.path, Steps: steps, Waited: w.waited()}
		}
		if err := w.sleep(ctx, steps); err != nil {
			return err
		}
	}
}

// awaitStart waits for a dataset that is not there yet; why is the reason.
func (r *Reader) awaitStart(ctx context.Context, why error) error {
	w := r.newWait(true)
	for notYet(why) {
		if w.expired() {
			return fmt.Errorf("bp: waited %v: %w", w.waited().Round(time.Millisecond), why)
		}
		if err := w.sleep(ctx, 0); err != nil {
			return err
		}
		if why = inspect(r.path); why == nil {
			why = r.start()
		}
	}
	return why
}

// notYet reports whether err means that the writer has not come far enough.
func notYet(err error) bool {
	return errors.Is(err, ErrEmpty) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoIndex)
}

// wait is one bounded wait that explains itself.
type wait struct {
	r       *Reader
	missing bool
	begin   time.Time
	told    bool
}

// newWait begins a wait; missing says that it is one for the dataset itself.
func (r *Reader) newWait(missing bool) *wait {
	return &wait{r: r, missing: missing, begin: time.Now()}
}

// waited returns how long the wait has lasted.
func (w *wait) waited() time.Duration { return time.Since(w.begin) }

// expired reports whether Config.Timeout is over.
func (w *wait) expired() bool { return w.r.cfg.Timeout > 0 && w.waited() >= w.r.cfg.Timeout }

// sleep waits until the next look is due.
func (w *wait) sleep(ctx context.Context, steps int) error {
	d := w.r.cfg.Poll
	if limit := w.r.cfg.Timeout; limit > 0 {
		d = min(d, max(limit-w.waited(), 0))
	}
	if quiet := noticeAfter - w.waited(); !w.told && quiet >= 0 {
		d = min(d, quiet+time.Millisecond) // a long Config.Poll does not delay the notice
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.r.done:
		return fmt.Errorf("bp: %s: %w", w.r.path, ErrClosed)
	case <-t.C:
	}
	if !w.told && w.waited() > noticeAfter {
		w.told = true
		w.r.cfg.Notify(Notice{Path: w.r.path, Steps: steps, Waited: w.waited(), Timeout: w.r.cfg.Timeout, Missing: w.missing})
	}
	return nil
}

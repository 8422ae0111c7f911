package bp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/weft-fabric/weft/step"
)

// Reader is an open dataset. Its methods may be called from several goroutines
// at a time.
type Reader struct {
	path string
	cfg  Config
	dir  folder
	data *subfiles
	done chan struct{} // closed by Close, to wake waiters

	mu       sync.Mutex // guards all below
	idx      *index
	whole    int  // steps whose metadata is there
	active   bool // the writer's mark, as of the last look
	idxFile  file
	meta     file // nil until it is needed
	formats  *formats
	fmtsFile file
	d        decoding
	closed   bool
}

// Info describes a dataset.
type Info struct {
	Path        string
	Release     string // of the ADIOS2 that wrote it, such as "2.10.2"
	Steps       int    // as they were written, known so far
	Writers     int    // the most ranks that a step has; of a flattened dataset, those of all steps
	Active      bool   // a writer is at work, or died without closing
	ColumnMajor bool   // written by a column-major program
	Flatten     bool   // the writer wants all steps presented as one
}

// Open opens the dataset at path, with or without a trailing slash. It reads
// the index, not the data. With Config.Follow it waits for a dataset that is
// not there yet; ctx ends that wait. The reader must be closed.
//
// The errors are those of this package, and fs.ErrNotExist.
func Open(ctx context.Context, path string, cfg Config) (*Reader, error) {
	cfg = cfg.resolve()
	path = clean(path)
	r := newReader(path, dir(path), cfg)
	err := inspect(path)
	if err == nil {
		err = r.start()
	}
	// What is missing may come; what is wrong stays wrong, and waiting for it would
	// only hide the reason.
	if cfg.Follow && notYet(err) {
		err = r.awaitStart(ctx, err)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// newReader is Open without the disk, for tests too.
func newReader(path string, d folder, cfg Config) *Reader {
	return &Reader{path: path, cfg: cfg, dir: d, data: newSubfiles(d, cfg.MaxFiles), done: make(chan struct{})}
}

// start opens the index and reads what is there.
func (r *Reader) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.dir.Open(indexName)
	if err != nil {
		return fmt.Errorf("bp: %w", err)
	}
	idx, err := openIndex(f)
	if err != nil {
		return errors.Join(fmt.Errorf("bp: %s: %w", r.path, err), f.Close())
	}
	r.idxFile, r.idx = f, idx
	r.d.cfg = step.DecoderConfig{ColumnMajor: idx.header.ColumnMajor, MaxAlloc: r.cfg.MaxAlloc}
	return r.refresh()
}

// Close closes the files. Steps of the reader cannot be read afterwards, and
// waits for further steps end with [ErrClosed]. It waits for reads in progress;
// a second Close does nothing.
func (r *Reader) Close() error {
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.closed = true
		close(r.done)
	}
	files := []io.Closer{r.idxFile, r.meta, r.fmtsFile}
	r.mu.Unlock()
	err := r.data.Close()
	if closed {
		return nil
	}
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Info returns a description of the dataset as known now.
func (r *Reader) Info() Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.idx.header // as it was at Open, but for the mark in r.active
	return Info{
		Path:    r.path,
		Release: fmt.Sprintf("%d.%d.%d", h.Major, h.Minor, h.Patch),
		Steps:   r.whole, Writers: r.writers(), Active: r.active,
		ColumnMajor: h.ColumnMajor, Flatten: h.Flatten,
	}
}

func (r *Reader) writers() int {
	if !r.flat() {
		return r.idx.most
	}
	n := 0
	for _, ref := range r.idx.steps[:r.whole] {
		n += ref.wmap.writers
	}
	return n
}

// Active reports whether the dataset carries the mark of a writer at work. The
// mark stays when a writer dies.
func (r *Reader) Active() bool { return r.Info().Active }

// Writers returns the largest number of ranks that a step has, see
// [step.Step.Ranks].
func (r *Reader) Writers() int { return r.Info().Writers }

// NumSteps returns the number of whole steps known so far: 1 for a flattened
// dataset. See [Reader.Refresh].
func (r *Reader) NumSteps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flat() {
		return min(r.whole, 1)
	}
	return r.whole
}

// Err says what is wrong with the end of the dataset: an [*IncompleteError], or
// one that wraps [ErrDamaged]. The steps in front can be read all the same. It
// is nil for a whole dataset, and for one whose writer is at work.
func (r *Reader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.idx.damage != nil:
		return fmt.Errorf("bp: %s: %d whole steps, then: %w", r.path, r.whole, r.idx.damage)
	case r.active:
		return nil
	case r.whole < len(r.idx.steps):
		ref := r.idx.steps[r.whole]
		return r.incomplete(cutOff("%s is cut off: it ends before byte %d", metaName, ref.metaPos+ref.metaLen))
	case r.idx.tail.left > 0:
		return r.incomplete(cutOff("%s is cut off: it ends inside a record", indexName))
	case r.whole == 0:
		return r.incomplete(cutOff("%s has no steps", indexName))
	}
	return nil
}

// incomplete makes the error for a dataset that ends too early. Caller holds
// r.mu.
func (r *Reader) incomplete(cause error) error {
	return &IncompleteError{Path: r.path, Steps: r.whole, Cause: cause}
}

// Refresh looks for steps that the writer added since, and returns the number
// of whole steps like [Reader.NumSteps]. It does not wait.
func (r *Reader) Refresh() (int, error) {
	r.mu.Lock()
	err := r.refresh()
	r.mu.Unlock()
	return r.NumSteps(), err
}

// Step returns step n, counted from 0 over the steps of the dataset. Any order
// is possible; ascending is fastest, because attributes accumulate: a jump reads
// the attribute records in between. ctx ends that.
//
// ADIOS2 numbers the steps of a variable over those in which it occurs when it
// reads by random access; see [Reader.StepsOf] for that numbering.
func (r *Reader) Step(ctx context.Context, n int) (*step.Step, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, fmt.Errorf("bp: %s: %w", r.path, ErrClosed)
	case n < 0 || n >= r.whole || r.flat() && n > 0:
		return nil, fmt.Errorf("bp: %s: step %d, there are %d: %w", r.path, n, r.whole, ErrNoStep)
	}
	st, err := r.make(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("bp: %s: step %d: %w", r.path, n, r.diagnose(err))
	}
	return st, nil
}

// make makes step n of what the reader presents: one of many, or the only one
// of a flattened dataset.
func (r *Reader) make(ctx context.Context, n int) (*step.Step, error) {
	if r.flat() {
		return r.decodeFlat(ctx)
	}
	return r.decode(ctx, n)
}

// diagnose tells a file that ends too early from other damage.
func (r *Reader) diagnose(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return err
}

// Steps iterates over the steps in order. It ends after the last step known,
// or, with Config.Follow, when the writer closes the dataset. A dataset that
// ends too early yields its whole steps and then the error of [Reader.Err]. An
// error ends the iteration.
func (r *Reader) Steps(ctx context.Context) iter.Seq2[*step.Step, error] {
	return func(yield func(*step.Step, error) bool) {
		for n := 0; ; n++ {
			if more, err := r.more(ctx, n); !more || err != nil {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			st, err := r.Step(ctx, n)
			if !yield(st, err) || err != nil {
				return
			}
		}
	}
}

// more reports whether there is a step n, after waiting for it if it may come.
func (r *Reader) more(ctx context.Context, n int) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if r.cfg.Follow && (n == 0 || !r.isFlat()) {
		if err := r.await(ctx, n); err != nil {
			return false, err
		}
	}
	if n < r.NumSteps() {
		return true, nil
	}
	return false, r.Err()
}

// isFlat is flat for callers that do not hold r.mu.
func (r *Reader) isFlat() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flat()
}

// flat reports whether all steps are presented as one. Caller holds r.mu.
func (r *Reader) flat() bool { return r.idx.header.Flatten && !r.cfg.IgnoreFlatten }

// StepsOf returns the numbers of the steps in which the variable occurs. Its
// k-th element is the step that ADIOS2's random access calls step k of that
// variable. It reads the metadata of all steps.
func (r *Reader) StepsOf(ctx context.Context, variable string) ([]int, error) {
	var found []int
	for n := range r.NumSteps() {
		st, err := r.Step(ctx, n)
		if err != nil {
			return nil, err
		}
		if _, ok := st.Variable(variable); ok {
			found = append(found, n)
		}
	}
	return found, nil
}

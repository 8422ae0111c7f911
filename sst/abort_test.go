package sst_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/sst"
)

// TestAbort: a stream that one of its ranks aborts is not at its end for its
// readers, who are told why, nor for the other ranks; there is nothing more to close.
func TestAbort(t *testing.T) {
	for rank := range 3 {
		t.Run(fmt.Sprint("rank ", rank), func(t *testing.T) {
			c := newCrew(t, 3, sst.WriterConfig{})
			r := attach(t, c.name, sst.ReaderConfig{})
			seen := async(func() error { _, err := drain(bounded(t), r); return err })

			// Even a cause that sounds like an end is not one.
			c.writers[rank].Abort(fmt.Errorf("NaN in step 7: %w", sst.ErrClosed))
			err := next(t, "the reader's end", seen)
			wants(t, "the reader", err, sst.ErrWriterFailed)
			if err == nil || !strings.Contains(err.Error(), "NaN in step 7") {
				t.Errorf("the reader: %v, want one that says why", err)
			}
			// A rank that has not heard of it can begin one more step, and not end it.
			c.wants("BeginStep", c.all(func(rank int) error {
				st, err := c.writers[rank].BeginStep(bounded(t))
				if err == nil {
					err = st.End(bounded(t))
				}
				return err
			}), sst.ErrAborted)
			for rank2, err := range c.all(func(rank int) error { return c.writers[rank].Close() }) {
				if rank2 == rank && err != nil || err != nil && !errors.Is(err, sst.ErrAborted) {
					t.Errorf("Close of rank %d: %v", rank2, err)
				}
			}
			absent(t, c.name+".sst")
		})
	}
}

// TestAbortAfterClose: a stream that has ended well cannot be aborted.
func TestAbortAfterClose(t *testing.T) {
	w := create(t, streamName(t), sst.WriterConfig{})
	r := attach(t, w.Name(), sst.ReaderConfig{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Abort(errors.New("too late"))
	if _, err := drain(bounded(t), r); err != nil {
		t.Error(err)
	}
}

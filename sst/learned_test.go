package sst_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// lockCapture is what an ADIOS2 writer sent that had locked its definitions, to a
// reader that locks its selections in step 0: five steps.
const lockCapture = "../internal/wire/cm/testdata/captures/e-main-1x1-lock.conn0.p2a.bin"

// captured decodes one direction of a captured connection.
func captured(t *testing.T, path string) []sstmsg.Message {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	formats := map[ffs.ID]*ffs.Format{}
	var list []sstmsg.Message
	for r := cm.NewReader(bytes.NewReader(b), cm.ReaderConfig{}); ; {
		u, err := r.Next()
		if err != nil {
			return list
		}
		switch u := u.(type) {
		case cm.FormatMessage:
			f, _, err := ffs.Parse(u.Second)
			if err != nil {
				t.Fatal(err)
			}
			formats[f.ID()] = f
		case cm.Data:
			id, _ := ffs.RecordID(u.Record)
			m, err := sstmsg.Decode(formats[id], bytes.Clone(u.Record))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, m)
		}
	}
}

// lockedWriter plays the captured writer.
type lockedWriter struct {
	*hostileWriter
	reply  func(sstmsg.Message)
	rest   []sstmsg.Message
	blocks map[int64][]byte // by step: what the replies brought
}

func newLockedWriter(t *testing.T) *lockedWriter {
	t.Helper()
	w := &lockedWriter{hostileWriter: newWriter(t, false), blocks: map[int64][]byte{}}
	for _, m := range captured(t, lockCapture) {
		switch m := m.(type) {
		case *sstmsg.ReadReply:
			w.blocks[m.Step] = append(w.blocks[m.Step], m.Data.Bytes()...)
		case *sstmsg.TimestepMetadata, *sstmsg.CommPatternLocked, *sstmsg.Preload, *sstmsg.WriterClose:
			w.rest = append(w.rest, m)
		}
	}
	return w
}

// play sends what the writer sent up to the metadata of the next step, or to the
// end.
func (w *lockedWriter) play() {
	for len(w.rest) > 0 {
		m := w.rest[0]
		w.rest = w.rest[1:]
		switch m := m.(type) {
		case *sstmsg.TimestepMetadata:
			m.ReaderID = w.control()
			w.reply(m)
			return
		case *sstmsg.CommPatternLocked:
			m.ReaderID = w.control()
		case *sstmsg.WriterClose:
			m.ReaderID = w.control()
		case *sstmsg.Preload:
			m.ReaderID = w.data()
		}
		w.reply(m)
	}
}

// serve answers one request.
func (w *lockedWriter) serve(number int64) {
	w.t.Helper()
	_, q := hear[*sstmsg.ReadRequest](w.fake)
	if q.Step != number || q.Offset+q.Length > int64(len(w.blocks[number])) {
		w.t.Fatalf("step %d: request %+v of a block of %d", number, q, len(w.blocks[number]))
	}
	w.reply(&sstmsg.ReadReply{Step: q.Step, ReaderID: q.ReaderID, Condition: q.Condition, Data: sstmsg.ByteBlob(w.blocks[number][q.Offset : q.Offset+q.Length])})
}

// readLocked reads both arrays of a step of the capture.
func readLocked(t *testing.T, st *step.Step) error {
	i := int64(st.Number())
	temp, err := step.Read[float64](bounded(t), st, "temp")
	if err != nil {
		return err
	}
	count, err := step.Read[int32](bounded(t), st, "count")
	if err != nil {
		return err
	}
	if len(temp) != 4 || len(count) != 3 {
		return fmt.Errorf("%d and %d values", len(temp), len(count))
	}
	for k := range temp {
		if want := float64(100*i + int64(k)); temp[k] != want {
			return fmt.Errorf("temp[%d] is %v, want %v", k, temp[k], want)
		}
	}
	for k := range count {
		if want := int32(1000*i + int64(k)); count[k] != want {
			return fmt.Errorf("count[%d] is %v, want %v", k, count[k], want)
		}
	}
	return nil
}

// TestLearnedPreload reads from a captured ADIOS2 writer that pushes what it has
// learned: the reader says that its selections are locked, right before it
// releases the step, asks in the first step of the new mode, and then no more
// (docs/wire/sst.md §6.3, §8.3). One block comes twice.
func TestLearnedPreload(t *testing.T) {
	w := newLockedWriter(t)
	open := w.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}})
	w.reply, _ = w.accept()
	r := next(t, "Open", open).reader(t)
	for i := range int64(5) {
		w.play()
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		got := async(func() error { return readLocked(t, st) })
		if i < 2 {
			w.serve(i)
			w.serve(i)
		}
		if err := next(t, "reading", got); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if i == 0 {
			if err := r.LockSelections(); err != nil {
				t.Error(err)
			}
		}
		st.End()
		if i == 0 {
			if _, m := hear[*sstmsg.LockReaderDefinitions](w.fake); m.Step != 0 || m.WriterID != fakeWSR {
				t.Errorf("%+v", m)
			}
		}
		if _, m := hear[*sstmsg.ReleaseTimestep](w.fake); m.Step != i {
			t.Errorf("%+v", m)
		}
		if info := r.Info(); info.Learned != (i > 0) || info.Preload != (i > 0) {
			t.Errorf("step %d: %+v", i, info)
		}
	}
	w.play()
	beginEOF(t, r)
	want := sst.WriterRank{Addr: r.Info().Writers[0].Addr, Route: "tcp", Requests: 4, Replied: 88, Pushes: 4, Pushed: 4 * 48, Duplicates: 1}
	if got := r.Info().Writers; len(got) != 1 || got[0] != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wants(t, "locking after Close", r.LockSelections(), sst.ErrOrder)
}

// TestLockedByAll: the writer hears of locked selections when every rank has
// locked, once.
func TestLockedByAll(t *testing.T) {
	w := newLockedWriter(t)
	c := local(t, 2)
	done := async(func() []error {
		return c.open(bounded(t), w.name, all(sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}}))
	})
	w.reply, _ = w.accept()
	for rank, err := range next(t, "Open", done) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	for i := range int64(5) {
		if i == 1 || i == 2 {
			if err := c.readers[i-1].LockSelections(); err != nil {
				t.Fatal(err)
			}
		}
		w.play()
		for _, r := range c.readers {
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			st.End()
		}
		if i == 2 {
			if _, m := hear[*sstmsg.LockReaderDefinitions](w.fake); m.Step != 2 {
				t.Errorf("%+v", m)
			}
		}
		if _, m := hear[*sstmsg.ReleaseTimestep](w.fake); m.Step != i {
			t.Errorf("%+v", m)
		}
	}
	c.close(t)
}

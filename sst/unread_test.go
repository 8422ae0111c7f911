package sst_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// unreadValues make a step that no socket takes in while nobody reads: 16 MiB.
const unreadValues = 2 << 20

// deafen ends all reading of the fake; the returned function lets it go on.
func (p *fake) deafen() (hear func()) {
	p.deaf.Lock()
	var over bool
	hear = func() {
		if !over {
			over = true
			p.deaf.Unlock()
		}
	}
	p.t.Cleanup(hear)
	return hear
}

// attachesPushed attaches a fake to whose ranks every step is pushed. The ranks
// after the first are the others.
func attachesPushed(t *testing.T, name string, others ...*fake) *fakeReader {
	t.Helper()
	r := dials(t, name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	for i, o := range others {
		contact, n := o.cm.Contact().String(), int64(10*(i+1))
		m.CP = append(m.CP, sstmsg.CPReader{Contact: contact, ReaderID: fakeControl + n})
		m.Evpath = append(m.Evpath, sstmsg.EvpathReader{Contact: contact, ReaderID: fakeData + n})
	}
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.query()
	return r
}

// given takes the next step of a fake that does not look at its data, and gives it
// back.
func (r *fakeReader) given() int64 {
	r.t.Helper()
	hear[*sstmsg.Preload](r.fake)
	return r.take()
}

// TestReleaseBeforeItIsSent: a reader that gives steps back without reading from
// its connection would make the writer keep more and more. What it says cannot be
// true, so it is dropped, and its connection with all that waits there.
func TestReleaseBeforeItIsSent(t *testing.T) {
	t.Parallel()
	log, logger := testutil.NewLog(slog.LevelInfo)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger})}), unreadValues)
	honest := attach(t, name, sst.ReaderConfig{})
	r := attachesPushed(t, name)
	hearAgain := r.deafen()
	const most = 8 // more than the kernel takes for a reader that has read well so far
	for n := int64(0); len(log.Lines()) == 0 && n < most; n++ {
		x.must(t)
		st, err := honest.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		st.End()
		r.release(n)
		testutil.Eventually(t, "the release has arrived", func() bool {
			i := x.w.Info()
			return len(i.Readers) < 2 || i.Readers[1].Released > n
		})
	}
	if line := next(t, "line of log", log.Lines()); !strings.Contains(line, "before it was sent") {
		t.Errorf("the log says %q", line)
	}
	testutil.Eventually(t, "the memory is free", func() bool { i := x.w.Info(); return len(i.Readers) == 1 && i.Held == 0 && i.Bytes == 0 })
	hearAgain()
	done := async(x.w.Close)
	beginEOF(t, honest)
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestUnreadBlocks: steps that a reader gives back while they are still on their
// way to one of its ranks count, so that a writer with policy Block waits for them,
// in steps and in bytes; when the rank reads, it goes on, and everything arrives.
func TestUnreadBlocks(t *testing.T) {
	for what, params := range map[string]sst.Params{"steps": {QueueLimit: 2}, "bytes": {QueueLimitBytes: 2 * 8 * unreadValues}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const steps, most = 9, 8 // the kernel and the fake take a few
			name := streamName(t)
			log, logger := testutil.NewLog(slog.LevelInfo)
			x := define(t, create(t, name, sst.WriterConfig{Params: params, Session: newSession(t, sst.SessionConfig{Logger: logger})}), unreadValues)
			far := newFake(t)
			r := attachesPushed(t, name, far)
			hearAgain := far.deafen()
			wrote := make(chan error, steps)
			go func() {
				for range steps {
					wrote <- x.write(bounded(t))
				}
			}()
			given := 0
			for waits := false; !waits; {
				select {
				case line := <-log.Lines():
					waits = strings.Contains(line, "does not read what it was sent")
				case err := <-wrote:
					if given++; err != nil || given > most {
						t.Fatalf("step %d went through, and the rank has read none: %v", given, err)
					}
					r.given()
				}
			}
			// Two in the queue, one that passed before the release was known, one that waits.
			if got := x.w.Info().Bytes; got > 4*9*unreadValues {
				t.Errorf("%d bytes are held", got)
			}
			hearAgain()
			for ; given < steps; given++ {
				if err := next(t, "End", wrote); err != nil {
					t.Fatal(err)
				}
				r.given()
			}
			for n := range int64(steps) {
				if _, p := hear[*sstmsg.Preload](far); p.Step != n {
					t.Errorf("step %d came as number %d", p.Step, n)
				}
			}
			if err := x.w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnreadDiscards: with policy Discard nobody waits, steps are dropped; and a
// limit on the lag detaches the reader.
func TestUnreadDiscards(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 5} {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2, QueueFullPolicy: "Discard", LagLimit: limit}}), unreadValues)
		far := newFake(t)
		r := attachesPushed(t, name, far)
		hearAgain := far.deafen()
		evicted := func() bool { return len(x.w.Info().Readers) == 0 }
		for n := int64(0); n < 12 && !evicted(); n++ {
			x.must(t)
			if evicted() {
				break
			}
			h := next(t, "step", r.got)
			if _, pushed := h.msg.(*sstmsg.Preload); pushed {
				r.take()
				testutil.Eventually(t, "the release is there", func() bool {
					i := x.w.Info()
					return len(i.Readers) == 0 || i.Readers[0].Released == i.Readers[0].Sent
				})
			}
		}
		info := x.w.Info()
		if info.Bytes > 5*8*unreadValues || info.Dropped == 0 {
			t.Errorf("limit %d: %d bytes are held, %d steps dropped", limit, info.Bytes, info.Dropped)
		}
		if evicted() != (limit > 0) {
			t.Errorf("limit %d: readers %+v", limit, info.Readers)
		}
		hearAgain()
		r.send(r.link, &sstmsg.ReaderClose{WriterID: r.wsr()})
		if err := x.w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnreadReaderLeaves: nobody waits for what is on its way to a reader that has
// gone.
func TestUnreadReaderLeaves(t *testing.T) {
	t.Parallel()
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}}), unreadValues)
	far := newFake(t)
	r := attachesPushed(t, name, far)
	far.deafen()
	done := async(func() error { return x.write(bounded(t)) })
	for !sst.WaitsForUnread(x.w) {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			r.given()
			done = async(func() error { return x.write(bounded(t)) })
		case <-time.After(time.Millisecond):
		}
	}
	r.send(r.link, &sstmsg.ReaderClose{WriterID: r.wsr()})
	if err := next(t, "End", done); err != nil {
		t.Error(err)
	}
	x.must(t)
}

// TestUnreadObserver: nobody waits for an observer, so one that asks for data and
// does not read is dropped.
func TestUnreadObserver(t *testing.T) {
	t.Parallel()
	name := streamName(t)
	const values = unreadValues / 4
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}}), values)
	r := attachesAs(t, name, 1, true, true)
	testutil.Eventually(t, "it is active", func() bool { i := x.w.Info(); return len(i.Readers) == 1 && i.Readers[0].Active })
	r.deafen()
	for n := int64(0); len(x.w.Info().Readers) > 0; n++ {
		x.must(t)
		if n > 50 {
			t.Fatal("the observer is still there")
		}
		r.quietly(&sstmsg.ReadRequest{Step: n, Length: 8 * values, WriterID: r.response.Evpath[0].WriterID, ReaderID: fakeData, Condition: int32(n)})
		r.quietly(&sstmsg.ReleaseTimestep{WriterID: r.wsr(), Step: n})
		testutil.Eventually(t, "it has come", func() bool {
			i := x.w.Info()
			return len(i.Readers) == 0 || i.Readers[0].Released == n+1
		})
	}
	testutil.Eventually(t, "the memory is free", func() bool { return x.w.Info().Bytes == 0 })
}

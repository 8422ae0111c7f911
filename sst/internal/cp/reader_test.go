package cp

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

const (
	testStream   = 100 // the writer's stream
	testQuery    = 7
	testRegister = 8
	testWSR      = 42 // what the writer calls us
	testReader   = 11 // what we call ourselves
)

func testReaderConfig() ReaderConfig {
	return ReaderConfig{
		StreamID: testStream, Planes: []string{"evpath"}, Query: testQuery, Register: testRegister,
		CP: sstmsg.CPReader{Contact: "c", ReaderID: testReader},
		DP: sstmsg.EvpathReader{Contact: "c", ReaderID: 12},
	}
}

// Messages of a writer.
func from(m sstmsg.Message) ReaderEvent { return FromWriter{Msg: m, Free: func() {}} }

func plane(name string) ReaderEvent {
	return from(&sstmsg.DPQueryResponse{Condition: testQuery, DataPlane: name})
}

func goodResponse() *sstmsg.WriterResponse {
	return &sstmsg.WriterResponse{
		Condition: testRegister, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		CP:     []sstmsg.CPWriter{{Contact: "w", WriterID: testWSR}},
		Evpath: []sstmsg.EvpathWriter{{Contact: "w", WriterID: 43}},
	}
}

func response(change func(*sstmsg.WriterResponse)) ReaderEvent {
	m := goodResponse()
	if change != nil {
		change(m)
	}
	return from(m)
}

func arrives(n int64) ReaderEvent {
	return from(&sstmsg.TimestepMetadata{ReaderID: testReader, Step: n, CohortSize: 1, Metadata: []sstmsg.Block{{}}, Attributes: []sstmsg.Block{{}}})
}

func discarded(n int64) ReaderEvent {
	return from(&sstmsg.TimestepMetadata{ReaderID: testReader, Step: n, CohortSize: 1, Attributes: []sstmsg.Block{{}}})
}

func writerClose(n int64) ReaderEvent {
	return from(&sstmsg.WriterClose{ReaderID: testReader, FinalStep: n})
}

// line is an event and what must follow from it.
type line struct {
	do   ReaderEvent
	want []string
}

func on(do ReaderEvent, want ...string) line { return line{do, want} }

// opening is the start of every history that gets in.
func opening() []line {
	return []line{
		on(Start{}, "send DPQuery"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
		on(response(nil), "send ReaderActivate to 42", "opened", "recycle"),
	}
}

func opened(rest ...line) []line { return append(opening(), rest...) }

// registered is a reader that waits for the writer's application.
func registered(rest ...line) []line { return append(opening()[:2], rest...) }

func TestReader(t *testing.T) {
	for name, lines := range map[string][]line{
		// docs/wire/sst.md §5.1: who sends what when.
		"opens, reads, ends": opened(
			on(Next{}),
			on(arrives(0), "wake"),
			on(Next{}, "absorb 0", "deliver 0"),
			on(Release{0}, "forget 0", "send ReleaseTimestep 0 to 42"),
			on(arrives(1), "wake"),
			on(writerClose(1), "wake", "recycle"),
			on(Next{}, "absorb 1", "deliver 1"),
			on(Release{1}, "forget 1", "send ReleaseTimestep 1 to 42"),
			on(Next{}, "end: nil"),
			on(Next{}, "end: nil"),
			on(Leave{}, "send ReaderClose to 42", "drop link", "wake"),
		),
		"starts once": {
			on(Start{}, "send DPQuery"),
			on(Start{}),
		},
		"PeerSetup before WriterResponse": registered(
			on(from(&sstmsg.PeerSetup{ReaderID: testReader, CohortSize: 1}), "recycle"),
			on(response(nil), "send ReaderActivate to 42", "opened", "recycle"),
		),
		"answers that are not ours": {
			on(Start{}, "send DPQuery"),
			on(from(&sstmsg.DPQueryResponse{Condition: 99, DataPlane: "evpath"}), "recycle"),
			on(from(&sstmsg.WriterResponse{Condition: testRegister}), "recycle"),
			on(plane("evpath"), "send ReaderRegister", "recycle"),
			on(plane("evpath"), "recycle"),
			on(response(func(m *sstmsg.WriterResponse) { m.Condition = 99 }), "recycle"),
			on(response(nil), "send ReaderActivate to 42", "opened", "recycle"),
			on(response(nil), "recycle"),
		},
		// §5.4: the decision falls before ReaderRegister.
		"plane we lack": {
			on(Start{}, "send DPQuery"),
			on(plane("ucx"), "open failed: ErrPlane", "drop link", "recycle"),
			on(WriterLost{}),
			on(Leave{}),
		},
		// §9.3: a refusal after ReaderRegister finishes the handshake first.
		"marshalling we lack": registered(
			on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0 }),
				"send ReaderActivate to 42", "open failed: ErrMarshal", "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"no parameters": registered(
			on(response(func(m *sstmsg.WriterResponse) { m.Params = nil }),
				"send ReaderActivate to 42", "open failed: errBadResponse", "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"contacts that do not match": registered(
			on(response(func(m *sstmsg.WriterResponse) { m.Evpath = nil }),
				"send ReaderActivate to 42", "open failed: errBadResponse", "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"no writer rank": registered(
			on(response(func(m *sstmsg.WriterResponse) { m.CP = nil }), "open failed: errBadResponse", "drop link", "recycle"),
		),
		"identity zero": registered(
			on(response(func(m *sstmsg.WriterResponse) { m.CP[0].WriterID = 0 }), "open failed: errBadResponse", "drop link", "recycle"),
		),

		// Cancel in each phase.
		"cancel before the start": {
			on(Cancel{errTest}, "open failed: errTest", "drop link"),
			on(Start{}),
		},
		"cancel while querying": {
			on(Start{}, "send DPQuery"),
			on(Cancel{errTest}, "open failed: errTest", "drop link"),
			on(plane("evpath"), "recycle"),
			on(WriterLost{}),
		},
		"cancel while registering": registered(
			on(Cancel{errTest}, "open failed: errTest"),
			on(Cancel{errTest}),
			on(Leave{}),
			on(from(&sstmsg.PeerSetup{ReaderID: testReader}), "recycle"),
			on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "wake", "recycle"),
			on(arrives(0), "recycle"),
			on(WriterLost{}),
		),
		"cancel, then a response we could not use": registered(
			on(Cancel{errTest}, "open failed: errTest"),
			on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0 }),
				"send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"cancel, then a response without identity": registered(
			on(Cancel{errTest}, "open failed: errTest"),
			on(response(func(m *sstmsg.WriterResponse) { m.CP = nil }), "drop link", "recycle"),
		),
		"cancel, then the writer is lost": registered(
			on(Cancel{errTest}, "open failed: errTest"),
			on(WriterLost{errTest}),
			on(response(nil), "recycle"),
		),
		"cancel after the opening is no event": opened(
			on(Cancel{errTest}),
			on(arrives(0), "wake"),
		),
		"leave while querying": {
			on(Start{}, "send DPQuery"),
			on(Leave{errTest}, "open failed: errTest", "drop link"),
		},
		"leave while registering": registered(
			on(Leave{errTest}, "open failed: errTest"),
			on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),

		// §9.1, §9.3: ends.
		"link lost while querying": {
			on(Start{}, "send DPQuery"),
			on(WriterLost{errTest}, "open failed: ErrTooLate+ErrWriterLost+errTest"),
			on(Leave{}, "drop link", "wake"),
		},
		"the stream has ended": {
			on(Start{}, "send DPQuery"),
			on(plane(PlaneEnded), "open failed: ErrTooLate", "drop link", "recycle"),
			on(WriterLost{}),
		},
		"the stream ends as we register": registered(
			on(plane(PlaneEnded), "recycle"), // the answer to the query has been
			on(from(&sstmsg.DPQueryResponse{Condition: testRegister, DataPlane: PlaneEnded}), "open failed: ErrTooLate", "drop link", "recycle"),
		),
		"the stream ends as we register and cancel": registered(
			on(Cancel{errTest}, "open failed: errTest"),
			on(from(&sstmsg.DPQueryResponse{Condition: testRegister, DataPlane: PlaneEnded}), "drop link", "recycle"),
		),
		"link lost while registering": registered(
			on(WriterLost{}, "open failed: ErrWriterLost+errGone"),
		),
		"link lost without WriterClose": opened(
			on(arrives(0), "wake"),
			on(WriterLost{errTest}, "wake"),
			on(Next{}, "absorb 0", "deliver 0"),
			on(Release{0}, "forget 0"),
			on(Next{}, "end: ErrWriterLost+errTest"),
			on(Next{}, "end: ErrWriterLost+errTest"),
			on(Leave{}, "drop link", "wake"),
		),
		"link lost after WriterClose": opened(
			on(arrives(0), "wake"),
			on(writerClose(0), "wake", "recycle"),
			on(WriterLost{errTest}, "wake"),
			on(Next{}, "absorb 0", "deliver 0"),
			on(Release{0}, "forget 0", "send ReleaseTimestep 0 to 42"),
			on(Next{}, "end: nil"),
		),
		"link lost after the end": opened(
			on(writerClose(-1), "wake", "recycle"),
			on(Next{}, "end: nil"),
			on(WriterLost{errTest}),
			on(Next{}, "end: nil"),
		),
		"leave with an open step and a queue": opened(
			on(arrives(0), "wake"),
			on(arrives(1), "wake"),
			on(Next{}, "absorb 0", "deliver 0"),
			on(Leave{}, "forget 0", "send ReleaseTimestep 0 to 42", "send ReaderClose to 42", "recycle", "forget 1", "drop link", "wake"),
			on(Release{0}),
			on(Leave{}),
			on(Next{}, "end: ErrOutOfOrder"),
		),

		// §9.4: late messages.
		"messages after ReaderClose": opened(
			on(Leave{}, "send ReaderClose to 42", "drop link", "wake"),
			on(arrives(0), "recycle"),
			on(writerClose(0), "recycle"),
			on(from(&sstmsg.CommPatternLocked{ReaderID: testReader}), "recycle"),
			on(plane("evpath"), "recycle"),
			on(from(&sstmsg.ReaderClose{}), "recycle"),
		),
		"locked pattern means nothing": opened(
			on(from(&sstmsg.CommPatternLocked{ReaderID: testReader, Step: 3}), "recycle"),
			on(arrives(0), "wake"),
		),

		// Steps of a writer that breaks the rules.
		"step before the activation": registered(
			on(arrives(0), "recycle"),
		),
		"step repeated": opened(
			on(arrives(3), "wake"),
			on(arrives(3), "send ReaderClose to 42", "drop link", "wake", "recycle"),
			on(Next{}, "absorb 3", "deliver 3"),
			on(Release{3}, "forget 3"),
			on(Next{}, "end: errUnexpected"),
		),
		"step backwards": opened(
			on(arrives(3), "wake"),
			on(arrives(2), "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"step negative": opened(
			on(arrives(-1), "send ReaderClose to 42", "drop link", "wake", "recycle"),
		),
		"gaps are no fault": opened( // round-robin, §12
			on(arrives(3), "wake"),
			on(arrives(7), "wake"),
			on(Next{}, "absorb 3", "deliver 3"),
		),
		"a message of the wrong direction": opened(
			on(from(&sstmsg.ReaderActivate{}), "send ReaderClose to 42", "drop link", "wake", "recycle"),
			on(Next{}, "end: errUnexpected"),
		),
		"a message of the wrong direction while opening": registered(
			on(from(&sstmsg.ReleaseTimestep{}), "open failed: errUnexpected", "drop link", "recycle"),
		),

		// §7.4, §6.2: discarded steps are absorbed, never delivered nor released.
		"discarded steps": opened(
			on(discarded(0)),
			on(Next{}, "absorb 0", "recycle", "forget 0"),
			on(arrives(1), "wake"),
			on(discarded(2)),
			on(discarded(3)),
			on(arrives(4), "wake"),
			on(Next{}, "absorb 1", "deliver 1"),
			on(Release{1}, "forget 1", "send ReleaseTimestep 1 to 42"),
			on(Next{}, "absorb 2", "recycle", "forget 2", "absorb 3", "recycle", "forget 3", "absorb 4", "deliver 4"),
			on(discarded(5)),
			on(writerClose(4), "wake", "recycle"),
			on(Release{4}, "forget 4", "send ReleaseTimestep 4 to 42"),
			on(Next{}, "absorb 5", "recycle", "forget 5", "end: nil"),
		),

		// Misuse by the application.
		"next with a step open": opened(
			on(arrives(0), "wake"),
			on(arrives(1), "wake"),
			on(Next{}, "absorb 0", "deliver 0"),
			on(Next{}, "end: ErrOutOfOrder"),
			on(Release{1}),
			on(Release{0}, "forget 0", "send ReleaseTimestep 0 to 42"),
			on(Release{0}),
		),
		"leave before the start": {
			on(Leave{errTest}, "open failed: errTest", "drop link"),
			on(Start{}),
			on(Next{}, "end: ErrOutOfOrder"),
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, NewReader(testReaderConfig()), lines) })
	}
}

func play(t *testing.T, r *Reader, lines []line) {
	t.Helper()
	for i, l := range lines {
		got := nameReader(r.Handle(l.do))
		same(t, nameEvent(i, l.do), got, l.want...)
	}
}

// TestReaderLatest skips to the newest step, and releases what it passes over
// in rising order.
func TestReaderLatest(t *testing.T) {
	cfg := testReaderConfig()
	cfg.Latest = true
	r := NewReader(cfg)
	play(t, r, opened(
		on(arrives(0), "wake"),
		on(arrives(1), "wake"),
		on(discarded(2)),
		on(arrives(3), "wake"),
		on(discarded(4)),
		on(Next{}, "absorb 0", "send ReleaseTimestep 0 to 42", "recycle", "forget 0",
			"absorb 1", "send ReleaseTimestep 1 to 42", "recycle", "forget 1",
			"absorb 2", "recycle", "forget 2", "absorb 3", "deliver 3"),
		on(Release{3}, "forget 3", "send ReleaseTimestep 3 to 42"),
		on(arrives(5), "wake"),
		on(Next{}, "absorb 4", "recycle", "forget 4", "absorb 5", "deliver 5"),
		on(Release{5}, "forget 5", "send ReleaseTimestep 5 to 42"),
		on(writerClose(5), "wake", "recycle"),
		on(Next{}, "end: nil"),
	))
	if got := r.Skipped(); got != 4 {
		t.Errorf("skipped %d, want 4: two passed over, two discarded", got)
	}
}

// TestReaderMessages looks into what a reader sends while it opens.
func TestReaderMessages(t *testing.T) {
	cfg := testReaderConfig()
	cfg.SpecPreload, cfg.WeftVersion = true, 1
	r := NewReader(cfg)
	q := r.Handle(Start{})[0].(SendToWriter).Msg.(*sstmsg.DPQuery)
	if q.WriterID != testStream || q.Condition != testQuery || q.Weft != 1 {
		t.Errorf("query %+v", q)
	}
	reg := r.Handle(plane("evpath"))[0].(SendToWriter).Msg.(*sstmsg.ReaderRegister)
	if reg.WriterID != testStream || reg.Condition != testRegister || reg.SpecPreload != 1 || len(reg.CP) != 1 || len(reg.Evpath) != 1 {
		t.Errorf("registration %+v", reg)
	}
	if reg.CP[0] != cfg.CP || reg.Evpath[0] != cfg.DP {
		t.Errorf("contacts %+v %+v", reg.CP, reg.Evpath)
	}
}

// TestReaderState follows what the shell asks between events.
func TestReaderState(t *testing.T) {
	r := NewReader(testReaderConfig())
	check := func(phase Phase, opening, pending bool, queued int) {
		t.Helper()
		if r.Phase() != phase || r.Opening() != opening || r.Pending() != pending || r.Queued() != queued {
			t.Errorf("phase %v opening %v pending %v queued %d", r.Phase(), r.Opening(), r.Pending(), r.Queued())
		}
	}
	check(Idle, true, false, 0)
	r.Handle(Start{})
	check(Querying, true, false, 0)
	r.Handle(plane("evpath"))
	check(Registering, true, true, 0)
	r.Handle(response(nil))
	check(Streaming, false, false, 0)
	r.Handle(arrives(0))
	r.Handle(discarded(1))
	check(Streaming, false, false, 1)
	r.Handle(writerClose(0))
	r.Handle(Next{})
	r.Handle(Release{0})
	r.Handle(Next{})
	check(Ended, false, false, 0)
	r.Handle(Leave{})
	check(Closed, false, false, 0)
	if r.Plane() != "evpath" {
		t.Errorf("plane %q", r.Plane())
	}
	for p := Idle; p <= Closed; p++ {
		if p.String() == "" {
			t.Errorf("phase %d has no name", p)
		}
	}
}

func TestPlaneError(t *testing.T) {
	err := error(&PlaneError{Writer: "ucx", Ours: []string{"evpath"}})
	if !errors.Is(err, ErrPlane) {
		t.Error("not an ErrPlane")
	}
	for _, part := range []string{"ucx", "evpath", "DataTransport", "WAN"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}

// TestReaderFreesOnce counts the memory of messages: each is given back once.
func TestReaderFreesOnce(t *testing.T) {
	freed := map[int]int{}
	n := 0
	msg := func(e ReaderEvent) ReaderEvent {
		f := e.(FromWriter)
		id := n
		n++
		f.Free = func() { freed[id]++ }
		return f
	}
	r := NewReader(testReaderConfig())
	run := func(e ReaderEvent) {
		for _, a := range r.Handle(e) {
			switch a := a.(type) {
			case Recycle:
				a.Free()
			case Deliver:
				a.Free() // the application is done at once
			}
		}
	}
	run(Start{})
	for _, e := range []ReaderEvent{plane("evpath"), response(nil), arrives(0), discarded(1), arrives(2), arrives(3)} {
		run(msg(e))
	}
	run(Next{})
	run(Release{0})
	run(Next{})
	run(Leave{})
	run(msg(arrives(4)))
	for id := range n {
		if freed[id] != 1 {
			t.Errorf("message %d was freed %d times", id, freed[id])
		}
	}
}

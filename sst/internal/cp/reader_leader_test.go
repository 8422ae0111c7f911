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

func testReaderConfig(members int) ReaderConfig {
	return ReaderConfig{Members: members, Params: "p", Planes: []string{"evpath"}}
}

// attempt is a link to a writer that is up: one that can be left at any time.
func attempt() ReaderEvent {
	return Attempt{StreamID: testStream, Query: testQuery, Register: testRegister, Contact: "here", Writer: "w:1", Release: "2.10"}
}

// weftAttempt is a link to a Weft writer.
func weftAttempt() ReaderEvent {
	a := attempt().(Attempt)
	a.WeftVersion = 1
	return a
}

// cautiousAttempt is a link to an ADIOS2 writer.
func cautiousAttempt() ReaderEvent {
	a := attempt().(Attempt)
	a.Cautious = true
	return a
}

// Messages of a writer.
func from(m sstmsg.Message) ReaderEvent { return FromWriter{Msg: m, Free: func() {}} }

func plane(name string) ReaderEvent {
	return from(&sstmsg.DPQueryResponse{Condition: testQuery, DataPlane: name})
}

func endedAtRegister() ReaderEvent {
	return from(&sstmsg.DPQueryResponse{Condition: testRegister, DataPlane: PlaneEnded})
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

func onDemandResponse() ReaderEvent {
	return response(func(m *sstmsg.WriterResponse) { m.Params.StepDistributionMode = distributeOnDemand })
}

// peerResponse is the response of n writer ranks in the Peer pattern.
func peerResponse(n int) ReaderEvent {
	return response(func(m *sstmsg.WriterResponse) {
		m.Params.CPCommPattern = sstmsg.PatternPeer
		for i := 1; i < n; i++ {
			m.CP = append(m.CP, sstmsg.CPWriter{Contact: "w", WriterID: testWSR + int64(i)})
			m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: "w", WriterID: 90 + int64(i)})
		}
	})
}

func peerSetup(rank int32) ReaderEvent {
	return from(&sstmsg.PeerSetup{ReaderID: testReader, WriterRank: rank})
}

func arrives(n int64) ReaderEvent {
	return from(&sstmsg.TimestepMetadata{ReaderID: testReader, Step: n, CohortSize: 1, Metadata: []sstmsg.Block{{}}, Attributes: []sstmsg.Block{{}}})
}

func discarded(n int64) ReaderEvent {
	return from(&sstmsg.TimestepMetadata{ReaderID: testReader, Step: n, CohortSize: 1, Attributes: []sstmsg.Block{{}}})
}

// discardedWith is a discarded step that brings an attribute.
func discardedWith(n int64) ReaderEvent {
	e := discarded(n)
	e.(FromWriter).Msg.(*sstmsg.TimestepMetadata).Attributes[0].Data = sstmsg.ByteBlob([]byte("a"))
	return e
}

func writerClose(n int64) ReaderEvent {
	return from(&sstmsg.WriterClose{ReaderID: testReader, FinalStep: n})
}

func closes(code int32, reason string) ReaderEvent {
	return from(&sstmsg.WriterClose{ReaderID: testReader, Code: code, Reason: reason})
}

// Messages of members.
func memberHello(m int) ReaderEvent { return memberHelloWith(m, "p") }

func memberHelloWith(m int, params string) ReaderEvent {
	c := []string{"own", "own", "other", "more"}[m] // member 1 shares member 0's contact
	return FromMember{m, &ReaderHello{
		CP: sstmsg.CPReader{Contact: c, ReaderID: testReader + int64(m)}, DP: sstmsg.EvpathReader{Contact: c, ReaderID: 20 + int64(m)}, Params: params,
	}}
}

func asks(m int, index int64) ReaderEvent          { return FromMember{m, &Ask{index}} }
func memberReleases(m int, step int64) ReaderEvent { return FromMember{m, &Released{step}} }
func locks(m int) ReaderEvent                      { return FromMember{m, &Locked{}} }
func memberLeaves(m int) ReaderEvent               { return FromMember{m, &Left{}} }

// line is an event and what must follow from it.
type line struct {
	do   ReaderEvent
	want []string
}

func on(do ReaderEvent, want ...string) line { return line{do, want} }

// opening is the start of every history of one member that gets in.
func opening(rest ...line) []line { return openingBy(attempt(), rest...) }

func openingBy(a ReaderEvent, rest ...line) []line {
	return append([]line{
		on(memberHello(0)),
		on(a, "send DPQuery"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
	}, rest...)
}

// registered is a reader that waits for the writer's application.
func registered(rest ...line) []line { return append(opening()[:3:3], rest...) }

// querying is a reader that has asked for the plane.
func querying(rest ...line) []line { return append(opening()[:2:2], rest...) }

// cohortOf opens a reader of n members.
func cohortOf(n int, a ReaderEvent, rest ...line) []line {
	var lines []line
	for m := range n {
		lines = append(lines, on(memberHello(m)))
	}
	return append(lines, openingBy(a, rest...)[1:]...)
}

// readerTable is one rule a history. The state diagram is made from it, too.
var readerTable = map[string][]line{
	// docs/wire/sst.md §5.1: who sends what when.
	"opens, reads, ends": opening(
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "recycle"),
		on(arrives(1)),
		on(writerClose(1), "recycle"),
		on(asks(0, 1), "all: #1 step 1", "all: end nil"),
		on(memberReleases(0, 1), "send ReleaseTimestep 1 to 42", "recycle"),
		on(asks(0, 2)),
		on(memberLeaves(0), "send ReaderClose to 42", "drop link"),
	),
	"starts once": {
		on(attempt(), "send DPQuery"),
		on(attempt()),
	},
	"PeerSetup before WriterResponse": registered(
		on(peerSetup(0), "recycle"),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
	),
	"the hello comes after the plane": {
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "recycle"),
		on(memberHello(0), "send ReaderRegister"),
		on(memberHello(0)),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
	},
	"answers that are not ours": {
		on(memberHello(0)),
		on(attempt(), "send DPQuery"),
		on(from(&sstmsg.DPQueryResponse{Condition: 99, DataPlane: "evpath"}), "recycle"),
		on(from(&sstmsg.WriterResponse{Condition: testRegister}), "recycle"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
		on(plane("evpath"), "recycle"),
		on(response(func(m *sstmsg.WriterResponse) { m.Condition = 99 }), "recycle"),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
		on(response(nil), "recycle"),
	},
	// §5.4: the decision falls before ReaderRegister.
	"plane we lack": querying(
		on(plane("ucx"), "open failed: ErrPlane", "all: failed ErrPlane", "drop link", "recycle"),
		on(WriterLost{}),
		on(memberLeaves(0)),
	),
	// §9.3: a refusal after ReaderRegister finishes the handshake first.
	"marshalling we lack": registered(
		on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0 }),
			"send ReaderActivate to 42", "open failed: ErrMarshal", "all: failed ErrMarshal", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"no parameters": registered(
		on(response(func(m *sstmsg.WriterResponse) { m.Params = nil }),
			"send ReaderActivate to 42", "open failed: ErrProtocol", "all: failed ErrProtocol", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"contacts that do not match": registered(
		on(response(func(m *sstmsg.WriterResponse) { m.Evpath = nil }),
			"send ReaderActivate to 42", "open failed: ErrProtocol", "all: failed ErrProtocol", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"no writer rank": registered(
		on(response(func(m *sstmsg.WriterResponse) { m.CP = nil }), "open failed: ErrProtocol", "all: failed ErrProtocol", "drop link", "recycle"),
	),
	"identity zero": registered(
		on(response(func(m *sstmsg.WriterResponse) { m.CP[0].WriterID = 0 }), "open failed: ErrProtocol", "all: failed ErrProtocol", "drop link", "recycle"),
	),

	// Cancel in each phase.
	"cancel before the attempt": {
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(Cancel{errTest}),
		on(memberHello(0)),
		on(attempt(), "drop link"),
	},
	"cancel while querying": querying(
		on(Cancel{ErrTimeout}, "open failed: another error", "all: failed another error", "drop link"),
		on(plane("evpath"), "recycle"),
		on(WriterLost{}),
	),
	"cancel while registering": registered(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(Cancel{errTest}),
		on(memberLeaves(0)),
		on(LeaveNow{}),
		on(peerSetup(0), "recycle"),
		on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
		on(arrives(0), "recycle"),
		on(WriterLost{}),
	),
	"cancel, then a response we could not use": registered(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0 }),
			"send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"cancel, then a response without identity": registered(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(response(func(m *sstmsg.WriterResponse) { m.CP = nil }), "drop link", "recycle"),
	),
	"cancel, then the writer is lost": registered(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(WriterLost{errTest}, "drop link"),
		on(response(nil), "recycle"),
	),
	"cancel after the opening is no event": opening(
		on(Cancel{errTest}),
		on(arrives(0)),
	),
	"the member leaves while querying": querying(
		on(memberLeaves(0), "open failed: ErrClosed", "drop link"),
	),
	"the member leaves while registering": registered(
		on(memberLeaves(0), "open failed: ErrClosed"),
		on(memberLeaves(0)),
		on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
	),

	// §9.1, §9.3: ends.
	"link lost while querying": querying(
		on(WriterLost{errTest}, "drop link", "try again: ErrTooLate+ErrWriterLost+errTest"),
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
	),
	"link lost, then the time is up": querying(
		on(WriterLost{}, "drop link", "try again: ErrTooLate+ErrWriterLost+errGone"),
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
	),
	"the stream has ended": querying(
		on(plane(PlaneEnded), "drop link", "try again: ErrTooLate", "recycle"),
		on(WriterLost{}),
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
	),
	"the stream ends as we register": registered(
		on(plane(PlaneEnded), "recycle"), // the answer to the query has been
		on(endedAtRegister(), "drop link", "try again: ErrTooLate", "recycle"),
	),
	"the stream ends as we register and cancel": registered(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(endedAtRegister(), "drop link", "recycle"),
	),
	"link lost while registering": registered(
		on(WriterLost{}, "open failed: ErrWriterLost+errGone", "all: failed ErrWriterLost", "drop link"),
	),
	"link lost without WriterClose": opening(
		on(arrives(0)),
		on(WriterLost{errTest}, "all: writer gone ErrWriterLost"),
		on(asks(0, 0), "all: #0 step 0", "all: end ErrWriterLost"),
		on(memberReleases(0, 0), "recycle"),
		on(asks(0, 1)),
		on(memberLeaves(0), "drop link"),
	),
	"link lost while a member waits": opening(
		on(asks(0, 0)),
		on(WriterLost{errTest}, "all: writer gone ErrWriterLost", "all: end ErrWriterLost"),
	),
	"link lost after WriterClose, with steps to read": opening(
		on(arrives(0)),
		on(writerClose(0), "recycle"),
		on(WriterLost{errTest}, "all: writer gone ErrWriterLost"),
		on(asks(0, 0), "all: #0 step 0", "all: end nil"),
		on(WriterLost{errTest}),
		on(memberReleases(0, 0), "recycle"),
		on(memberLeaves(0), "drop link"),
	),
	"link lost after WriterClose, with a step open": opening(
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(writerClose(0), "all: end nil", "recycle"),
		on(WriterLost{errTest}, "all: writer gone ErrWriterLost"),
	),
	"link lost after the end": opening(
		on(writerClose(-1), "all: end nil", "recycle"),
		on(WriterLost{errTest}),
		on(asks(0, 0)),
		on(memberLeaves(0), "drop link"),
	),
	"leave with an open step and a queue": opening(
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(arrives(1)),
		on(memberLeaves(0), "send ReleaseTimestep 0 to 42", "send ReaderClose to 42", "recycle", "drop link"),
		on(memberReleases(0, 0), "recycle"), // only now member 0 has done with its memory
		on(memberReleases(0, 0)),
		on(memberLeaves(0)),
		on(asks(0, 1)),
	),
	"leave now": opening(
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(arrives(1)),
		on(LeaveNow{ErrTimeout}, "all: failed another error", "send ReaderClose to 42", "recycle", "drop link"),
		on(LeaveNow{}),
		on(memberReleases(0, 0), "recycle"),
	),
	"leave now while querying": querying(
		on(LeaveNow{}, "open failed: ErrClosed", "all: failed ErrClosed", "drop link"),
	),
	"leave now, at the end": opening(
		on(writerClose(-1), "all: end nil", "recycle"),
		on(LeaveNow{}, "all: failed ErrClosed", "send ReaderClose to 42", "drop link"),
	),
	"leave now, the writer gone": opening(
		on(WriterLost{}, "all: writer gone ErrWriterLost", "all: end ErrWriterLost"),
		on(LeaveNow{}, "all: failed ErrClosed", "drop link"),
	),

	// docs/decisions/0006: leaving an ADIOS2 writer with care.
	"parting, until a step": openingBy(cautiousAttempt(),
		on(memberLeaves(0), "part"),
		on(arrives(0), "send ReaderClose to 42", "drop link", "recycle"),
		on(Settled{}),
	),
	"parting, until it is quiet": openingBy(cautiousAttempt(),
		on(Settled{}),
		on(LeaveNow{}, "all: failed ErrClosed", "part"),
		on(LeaveNow{}),
		on(memberLeaves(0)),
		on(Settled{}, "send ReaderClose to 42", "drop link"),
	),
	"parting, until WriterClose": openingBy(cautiousAttempt(),
		on(memberLeaves(0), "part"),
		on(writerClose(0), "send ReaderClose to 42", "drop link", "recycle"),
	),
	"parting, until the link is lost": openingBy(cautiousAttempt(),
		on(memberLeaves(0), "part"),
		on(WriterLost{}, "drop link"),
		on(Settled{}),
	),
	"parting, with a step held": openingBy(cautiousAttempt(),
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(memberLeaves(0), "send ReleaseTimestep 0 to 42", "part"),
		on(memberReleases(0, 0), "recycle"),
		on(Settled{}, "send ReaderClose to 42", "drop link"),
	),
	// The writer has just been told ReaderActivate, and takes the reader in.
	"parting, after an opening that was given up": append(openingBy(cautiousAttempt())[:3:3],
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(response(nil), "send ReaderActivate to 42", "part", "recycle"),
		on(Settled{}, "send ReaderClose to 42", "drop link"),
	),
	"parting, after a refusal": append(openingBy(cautiousAttempt())[:3:3],
		on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0 }),
			"send ReaderActivate to 42", "open failed: ErrMarshal", "all: failed ErrMarshal", "part", "recycle"),
		on(Settled{}, "send ReaderClose to 42", "drop link"),
	),
	// After the writer's close nothing is in its way.
	"no parting after WriterClose": openingBy(cautiousAttempt(),
		on(arrives(0)),
		on(writerClose(0), "recycle"),
		on(memberLeaves(0), "send ReaderClose to 42", "recycle", "drop link"),
	),

	// §9.4: late messages.
	"messages after ReaderClose": opening(
		on(memberLeaves(0), "send ReaderClose to 42", "drop link"),
		on(arrives(0), "recycle"),
		on(writerClose(0), "recycle"),
		on(from(&sstmsg.CommPatternLocked{ReaderID: testReader}), "recycle"),
		on(plane("evpath"), "recycle"),
		on(peerSetup(1), "recycle"),
		on(from(&sstmsg.ReaderClose{}), "recycle"),
	),
	"a step after WriterClose": opening(
		on(arrives(0)),
		on(writerClose(0), "recycle"),
		on(arrives(1)),
		on(asks(0, 0), "all: #0 step 0"),
		on(asks(0, 1), "all: #1 step 1", "all: end nil"),
		on(arrives(2), "recycle"),
	),
	"locked pattern means nothing by itself": opening(
		on(from(&sstmsg.CommPatternLocked{ReaderID: testReader, Step: 3}), "recycle"),
		on(arrives(0)),
	),

	// Steps of a writer that breaks the rules.
	"step before the activation": registered(
		on(arrives(0), "recycle"),
	),
	"step repeated": opening(
		on(arrives(3)),
		on(arrives(3), "send ReaderClose to 42", "drop link", "all: writer gone ErrProtocol", "recycle"),
		on(asks(0, 0), "all: #0 step 3", "all: end ErrProtocol"),
		on(memberReleases(0, 3), "recycle"),
		on(memberLeaves(0)),
	),
	"step backwards": opening(
		on(arrives(3)),
		on(arrives(2), "send ReaderClose to 42", "drop link", "all: writer gone ErrProtocol", "recycle"),
	),
	"step negative": opening(
		on(arrives(-1), "send ReaderClose to 42", "drop link", "all: writer gone ErrProtocol", "all: end ErrProtocol", "recycle"),
	),
	"gaps are no fault": opening( // round-robin, §12
		on(arrives(3)),
		on(arrives(7)),
		on(asks(0, 0), "all: #0 step 3"),
		on(asks(0, 1), "all: #1 step 7"),
	),
	"a message of the wrong direction": opening(
		on(from(&sstmsg.ReaderActivate{}), "send ReaderClose to 42", "drop link", "all: writer gone ErrProtocol", "all: end ErrProtocol", "recycle"),
	),
	"a message of the wrong direction while opening": registered(
		on(from(&sstmsg.ReleaseTimestep{}), "open failed: ErrProtocol", "all: failed ErrProtocol", "drop link", "recycle"),
	),

	// §7.4, §6.2: discarded steps are told of, never delivered nor released.
	"discarded steps": opening(
		on(discarded(0), "recycle"),
		on(asks(0, 0)),
		on(arrives(1), "all: not step 0 skipped 1", "all: #0 step 1 skipped 1"),
		on(discarded(2), "recycle"),
		on(discarded(3), "recycle"),
		on(discardedWith(4), "recycle"),
		on(discarded(5), "recycle"),
		on(memberReleases(0, 1), "send ReleaseTimestep 1 to 42", "recycle"),
		on(arrives(6)),
		on(asks(0, 1), "all: not step 2 skipped 3", "all: not step 4 skipped 5", "all: #1 step 6 skipped 5"),
		on(discarded(7), "recycle"),
		on(writerClose(6), "all: not step 7 skipped 6", "all: end nil", "recycle"),
		on(memberReleases(0, 6), "send ReleaseTimestep 6 to 42", "recycle"),
		on(memberReleases(0, 7)),
	),

	// Nonsense from members has no effect.
	"members that are not there": opening(
		on(arrives(0)),
		on(FromMember{-1, &Ask{}}),
		on(FromMember{1, &Ask{}}),
		on(MemberLost{1, nil}),
		on(MemberLost{-1, nil}),
		on(asks(0, 5)),
		on(memberReleases(0, 0)),
		on(FromMember{0, &Go{}}),
		on(asks(0, 0), "all: #0 step 0"),
		on(asks(0, 0)),
	),
}

// cohortTable are the rules of more than one member.
var cohortTable = map[string][]line{
	"registers when all are here": {
		on(memberHello(1)),
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "recycle"),
		on(memberHello(0), "send ReaderRegister"),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
	},
	"other parameters": {
		on(memberHello(0)),
		on(attempt(), "send DPQuery"),
		on(memberHelloWith(1, "q"), "open failed: ErrParam", "all: failed ErrParam", "drop link"),
		on(plane("evpath"), "recycle"),
	},
	"other parameters before the attempt": {
		on(memberHelloWith(1, "q"), "open failed: ErrParam", "all: failed ErrParam"),
		on(attempt(), "drop link"),
	},
	"the link is lost while a hello is awaited": {
		on(memberHello(0)),
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "recycle"),
		on(WriterLost{}, "drop link", "try again: ErrTooLate+ErrWriterLost+errGone"),
		on(memberHello(1)),
		on(attempt(), "send DPQuery"),
		on(plane("evpath"), "send ReaderRegister", "recycle"),
	},
	"each gets every step, once": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(1, 0), "all: #0 step 0"),
		on(asks(0, 0)),
		on(arrives(1)),
		on(asks(0, 1), "all: #1 step 1"),
		on(memberReleases(0, 0), "recycle"),
		on(memberReleases(0, 0)),
		on(memberReleases(1, 0), "send ReleaseTimestep 0 to 42"),
	),
	// §6.2: an ADIOS2 writer takes the last number as a mark.
	"releases rise for ADIOS2": cohortOf(2, attempt(),
		on(arrives(0)), on(arrives(1)), on(arrives(2)),
		on(asks(0, 0), "all: #0 step 0"),
		on(asks(0, 1), "all: #1 step 1"),
		on(asks(0, 2), "all: #2 step 2"),
		on(memberReleases(0, 1), "recycle"),
		on(memberReleases(1, 1)),
		on(memberReleases(1, 2)),
		on(memberReleases(1, 0)),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "send ReleaseTimestep 1 to 42", "recycle"),
		on(memberReleases(0, 2), "send ReleaseTimestep 2 to 42", "recycle"),
	),
	"releases go at once to Weft": cohortOf(2, weftAttempt(),
		on(arrives(0)), on(arrives(1)),
		on(asks(0, 0), "all: #0 step 0"),
		on(asks(0, 1), "all: #1 step 1"),
		on(memberReleases(0, 1), "recycle"),
		on(memberReleases(1, 1), "send ReleaseTimestep 1 to 42"),
		on(memberReleases(1, 0)),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "recycle"),
	),
	"who leaves has released": cohortOf(2, attempt(),
		on(arrives(0)), on(arrives(1)),
		on(asks(0, 0), "all: #0 step 0"),
		on(asks(0, 1), "all: #1 step 1"),
		on(memberReleases(0, 0), "recycle"),
		on(memberLeaves(1), "send ReleaseTimestep 0 to 42"),
		on(memberReleases(0, 1), "send ReleaseTimestep 1 to 42", "recycle"),
		on(memberReleases(1, 1)),
		on(arrives(2)),
		on(asks(1, 2)),
		on(asks(0, 2), "all: #2 step 2"),
		on(memberReleases(0, 2), "send ReleaseTimestep 2 to 42", "recycle"),
		on(memberLeaves(0), "send ReaderClose to 42", "drop link"),
	),
	"member 0 leaves first": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(1, 0), "all: #0 step 0"),
		on(memberLeaves(0)),
		on(memberReleases(0, 0), "recycle"),
		on(memberReleases(1, 0), "send ReleaseTimestep 0 to 42"),
		on(arrives(1)),
		on(asks(1, 1), "all: #1 step 1"),
		on(memberReleases(1, 1), "send ReleaseTimestep 1 to 42"),
		on(memberReleases(0, 1), "recycle"), // it says so at once
	),
	"who asked has left": cohortOf(2, attempt(),
		on(asks(1, 0)),
		on(memberLeaves(1)),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
	),
	// §6.3: right before the next release.
	"locked by all": cohortOf(2, attempt(),
		on(arrives(0)), on(arrives(1)),
		on(asks(0, 0), "all: #0 step 0"),
		on(locks(0)),
		on(locks(0)),
		on(memberReleases(0, 0), "recycle"),
		on(memberReleases(1, 0), "send ReleaseTimestep 0 to 42"),
		on(asks(0, 1), "all: #1 step 1"),
		on(locks(1)),
		on(memberReleases(1, 1)),
		on(memberReleases(0, 1), "send LockReaderDefinitions", "send ReleaseTimestep 1 to 42", "recycle"),
		on(arrives(2)),
		on(asks(0, 2), "all: #2 step 2"),
		on(memberLeaves(1)),
		on(memberReleases(0, 2), "send ReleaseTimestep 2 to 42", "recycle"),
	),
	"locked by all who are left": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
		on(locks(0)),
		on(memberLeaves(1)),
		on(memberReleases(0, 0), "send LockReaderDefinitions", "send ReleaseTimestep 0 to 42", "recycle"),
	),

	// Deaths.
	"a rank dies before its hello": {
		on(memberHello(0)),
		on(MemberLost{1, errTest}, "open failed: ErrRankLost+errTest", "all: failed ErrRankLost"),
	},
	"a rank dies while querying": append(cohortOf(2, attempt())[:3:3],
		on(MemberLost{1, errTest}, "open failed: ErrRankLost+errTest", "all: failed ErrRankLost", "drop link"),
	),
	"a rank dies while registering": append(cohortOf(2, attempt())[:4:4],
		on(MemberLost{1, nil}, "open failed: ErrRankLost+errGone", "all: failed ErrRankLost"),
		on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"a rank dies": cohortOf(2, cautiousAttempt(),
		on(arrives(0)), on(arrives(1)),
		on(asks(0, 0), "all: #0 step 0"),
		on(MemberLost{1, errTest}, "all: failed ErrRankLost", "recycle", "part"),
		on(MemberLost{1, errTest}),
		on(memberReleases(0, 0), "recycle"),
		on(memberLeaves(0)),
		on(Settled{}, "send ReaderClose to 42", "drop link"),
	),
	"a rank dies that alone held a step": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
		on(memberReleases(0, 0), "recycle"),
		on(MemberLost{1, errTest}, "send ReleaseTimestep 0 to 42", "all: failed ErrRankLost", "send ReaderClose to 42", "drop link"),
	),
	"a rank dies that has left": cohortOf(2, attempt(),
		on(memberLeaves(1)),
		on(MemberLost{1, errTest}),
		on(arrives(0)),
	),
	"a rank dies that has read all": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
		on(memberReleases(1, 0)),
		on(writerClose(0), "all: end nil", "recycle"),
		on(MemberLost{1, errTest}),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "recycle"),
		on(memberLeaves(0), "send ReaderClose to 42", "drop link"),
	),
	"a rank dies at the end, with a step": cohortOf(2, attempt(),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
		on(writerClose(0), "all: end nil", "recycle"),
		on(MemberLost{1, errTest}, "all: failed ErrRankLost", "send ReaderClose to 42", "drop link"),
		on(memberReleases(0, 0), "recycle"),
	),
	"a rank dies after the writer": cohortOf(2, attempt(),
		on(arrives(0)),
		on(WriterLost{}, "all: writer gone ErrWriterLost"),
		on(MemberLost{1, nil}, "all: failed ErrRankLost", "recycle", "drop link"),
	),
	"a rank closes before its hello": {
		on(memberHello(0)),
		on(memberLeaves(1), "open failed: ErrRankLost", "all: failed ErrRankLost"),
	},
	"a rank closes while opening": append(cohortOf(2, attempt())[:4:4],
		on(memberLeaves(1)),
		on(response(nil), "send ReaderActivate to 42", "all: readeropened", "recycle"),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "recycle"),
	),
	"all close while opening": append(cohortOf(2, attempt())[:4:4],
		on(memberLeaves(1)),
		on(memberLeaves(0), "open failed: ErrClosed"),
		on(response(nil), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
	),
	"leave now, with members": cohortOf(2, attempt(),
		on(memberLeaves(0)),
		on(LeaveNow{}, "all: failed ErrClosed", "send ReaderClose to 42", "drop link"),
		on(memberLeaves(1)),
	),

	// The Peer pattern serves one reader rank. The handshake is finished with the
	// writer ranks that are rank 0's peers (docs/wire/sst.md §10.2).
	"Peer pattern is refused": append(cohortOf(2, attempt())[:4:4],
		on(peerResponse(4), "recycle"),
		on(peerSetup(1), "send ReaderActivate to 42", "send ReaderActivate to 43 [1]", "open failed: ErrParam", "all: failed ErrParam",
			"send ReaderClose to 42", "send ReaderClose to 43 [1]", "drop link", "recycle"),
	),
}

// configTable are rules of single parameters, for one member.
var configTable = map[string]struct {
	change func(*ReaderConfig)
	lines  []line
}{
	"latest": {func(c *ReaderConfig) { c.Latest = true }, opening(
		on(arrives(0)), on(arrives(1)), on(discarded(2), "recycle"), on(arrives(3)), on(discarded(4), "recycle"),
		on(asks(0, 0), "all: not step 0 skipped 1", "recycle", "all: not step 1 skipped 2", "recycle", "all: not step 2 skipped 3",
			"all: #0 step 3 skipped 3", "send ReleaseTimestep 0 to 42", "send ReleaseTimestep 1 to 42"),
		on(memberReleases(0, 3), "send ReleaseTimestep 3 to 42", "recycle"),
		on(arrives(5)),
		on(asks(0, 1), "all: not step 4 skipped 4", "all: #1 step 5 skipped 4"),
		on(memberReleases(0, 5), "send ReleaseTimestep 5 to 42", "recycle"),
		on(writerClose(5), "all: end nil", "recycle"),
	)},
	"latest, older step retained": {func(c *ReaderConfig) { c.Latest = true }, opening(
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(arrives(1)), on(arrives(2)),
		on(asks(0, 1), "all: not step 1 skipped 1", "recycle", "all: #1 step 2 skipped 1"),
		on(memberReleases(0, 2), "recycle"),
		on(memberReleases(0, 0), "send ReleaseTimestep 0 to 42", "send ReleaseTimestep 1 to 42", "send ReleaseTimestep 2 to 42", "recycle"),
	)},
	"latest goes to the newest at the first ask": {func(c *ReaderConfig) { c.Latest, c.Members = true, 2 }, cohortOf(2, attempt(),
		on(arrives(0)), on(arrives(1)),
		on(asks(1, 0), "all: not step 0 skipped 1", "recycle", "all: #0 step 1 skipped 1", "send ReleaseTimestep 0 to 42"),
		on(arrives(2)),
		on(asks(0, 0)),
	)},
	// §12: one ReaderRequestStep for each step.
	"on demand": {nil, append(registered(on(onDemandResponse(), "send ReaderActivate to 42", "all: readeropened", "recycle")),
		on(asks(0, 0), "send ReaderRequestStep"),
		on(asks(0, 0)),
		on(discarded(0), "recycle"),
		on(arrives(1), "all: not step 0 skipped 1", "all: #0 step 1 skipped 1"),
		on(asks(0, 1), "send ReaderRequestStep"),
		on(writerClose(1), "all: end nil", "recycle"), // the request crossed it
		on(memberReleases(0, 1), "send ReleaseTimestep 1 to 42", "recycle"),
	)},
	"on demand, a step is here": {nil, append(registered(on(onDemandResponse(), "send ReaderActivate to 42", "all: readeropened", "recycle")),
		on(arrives(0)),
		on(asks(0, 0), "all: #0 step 0"),
	)},
	"on demand, the writer dies": {nil, append(registered(on(onDemandResponse(), "send ReaderActivate to 42", "all: readeropened", "recycle")),
		on(asks(0, 0), "send ReaderRequestStep"),
		on(WriterLost{}, "all: writer gone ErrWriterLost", "all: end ErrWriterLost"),
	)},
	"on demand, two members ask": {func(c *ReaderConfig) { c.Members = 2 },
		append(cohortOf(2, attempt())[:4:4],
			on(onDemandResponse(), "send ReaderActivate to 42", "all: readeropened", "recycle"),
			on(asks(1, 0), "send ReaderRequestStep"),
			on(asks(0, 0)),
			on(arrives(4), "all: #0 step 4"),
			on(asks(0, 1), "send ReaderRequestStep"),
			on(memberLeaves(0)), // its request stays out
			on(arrives(5)),
			on(asks(1, 1), "all: #1 step 5"),
		)},
	// To ask would take a step from readers that count.
	"an observer asks for nothing": {func(c *ReaderConfig) { c.Observer = true },
		append(openingBy(weftAttempt())[:3:3],
			on(onDemandResponse(), "send ReaderActivate to 42", "all: readeropened", "recycle"),
			on(asks(0, 0)),
			on(arrives(0), "all: #0 step 0"),
		)},
	"evicted": {nil, openingBy(weftAttempt(),
		on(arrives(0)),
		on(closes(sstmsg.CloseEvicted, "evicted: slow: 12 steps behind"), "all: writer gone ErrEvicted", "recycle"),
		on(WriterLost{}),
		on(asks(0, 0), "all: #0 step 0", "all: end ErrEvicted"),
		on(memberReleases(0, 0), "recycle"),
		on(memberLeaves(0), "drop link"),
	)},
	"the writer says that it failed": {nil, openingBy(weftAttempt(),
		on(closes(sstmsg.CloseFailed, "writer rank 3 is lost"), "all: writer gone ErrWriterLost", "all: end ErrWriterLost", "recycle"),
	)},
	// One member in the Peer pattern talks to every writer rank.
	"Peer pattern": {nil, append(registered(),
		on(peerSetup(2), "recycle"),
		on(peerSetup(0), "recycle"),
		on(peerSetup(-1), "recycle"),
		on(peerSetup(maxRank+1), "recycle"),
		on(peerResponse(3), "recycle"),
		on(peerSetup(1), "send ReaderActivate to 42", "send ReaderActivate to 43 [1]", "send ReaderActivate to 44 [2]", "all: readeropened", "recycle"),
		on(asks(0, 0)),
		on(arrives(0), "all: #0 step 0"),
		on(locks(0)),
		on(memberReleases(0, 0),
			"send LockReaderDefinitions", "send LockReaderDefinitions [1]", "send LockReaderDefinitions [2]",
			"send ReleaseTimestep 0 to 42", "send ReleaseTimestep 0 to 43 [1]", "send ReleaseTimestep 0 to 44 [2]", "recycle"),
		on(memberLeaves(0), "send ReaderClose to 42", "send ReaderClose to 43 [1]", "send ReaderClose to 44 [2]", "drop link"),
	)},
}

func TestReaderLeader(t *testing.T) {
	for name, lines := range readerTable {
		t.Run(name, func(t *testing.T) { play(t, NewReaderLeader(testReaderConfig(0)), lines) })
	}
	for name, lines := range cohortTable {
		t.Run("cohort: "+name, func(t *testing.T) { play(t, NewReaderLeader(testReaderConfig(2)), lines) })
	}
	for name, c := range configTable {
		t.Run("with parameters: "+name, func(t *testing.T) {
			cfg := testReaderConfig(1)
			if c.change != nil {
				c.change(&cfg)
			}
			play(t, NewReaderLeader(cfg), c.lines)
		})
	}
}

func play(t *testing.T, l *ReaderLeader, lines []line) {
	t.Helper()
	for i, at := range lines {
		got := nameLeader(l.Handle(at.do))
		same(t, nameReaderEvent(i, at.do), got, at.want...)
	}
}

// run plays lines without looking, and returns the actions of the last one.
func runReader(l *ReaderLeader, lines ...line) (last []ReaderAction) {
	for _, at := range lines {
		last = l.Handle(at.do)
	}
	return last
}

// TestReaderMessages looks into what a cohort sends while it opens.
func TestReaderMessages(t *testing.T) {
	cfg := testReaderConfig(3)
	cfg.SpecPreload, cfg.Observer = true, true
	l := NewReaderLeader(cfg)
	var q *sstmsg.DPQuery
	for _, a := range l.Handle(weftAttempt()) {
		if s, ok := a.(SendToWriter); ok {
			q = s.Msg.(*sstmsg.DPQuery)
		}
	}
	if q == nil || q.WriterID != testStream || q.Condition != testQuery || q.Weft != 1 {
		t.Errorf("query %+v", q)
	}
	runReader(l, on(plane("evpath")), on(memberHello(0)), on(memberHello(2)))
	var reg *sstmsg.ReaderRegister
	for _, a := range l.Handle(memberHello(1)) {
		if s, ok := a.(SendToWriter); ok {
			reg = s.Msg.(*sstmsg.ReaderRegister)
		}
	}
	if reg == nil || reg.WriterID != testStream || reg.Condition != testRegister || reg.SpecPreload != 1 || reg.Observer != 1 || len(reg.CP) != 3 || len(reg.Evpath) != 3 {
		t.Fatalf("registration %+v", reg)
	}
	// Members 0 and 1 share a contact; on this link it is another one.
	for m, contact := range []string{"here", "here", "other"} {
		if reg.CP[m].Contact != contact || reg.Evpath[m].Contact != contact || reg.CP[m].ReaderID != testReader+int64(m) || reg.Evpath[m].ReaderID != 20+int64(m) {
			t.Errorf("contacts of member %d: %+v %+v", m, reg.CP[m], reg.Evpath[m])
		}
	}
	for _, a := range l.Handle(response(nil)) {
		if all, ok := a.(ToAll); ok {
			o := all.Msg.(*ReaderOpened)
			if !o.Weft || o.Plane != "evpath" || o.Writer != "w:1" || o.Release != "2.10" || o.Response.CP[0].WriterID != testWSR {
				t.Errorf("opened %+v", o)
			}
		}
	}
}

// TestObserverOfADIOS2: the word is not ADIOS2's, so it is not said there.
func TestObserverOfADIOS2(t *testing.T) {
	cfg := testReaderConfig(1)
	cfg.Observer = true
	l := NewReaderLeader(cfg)
	last := runReader(l, opening()[:3]...)
	for _, a := range last {
		if s, ok := a.(SendToWriter); ok && s.Msg.(*sstmsg.ReaderRegister).Observer != 0 {
			t.Error("it says that it is an observer")
		}
	}
}

// TestReaderState follows what the shell asks between events.
func TestReaderState(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(2))
	check := func(phase Phase, opening, pending bool, queued, held, present int) {
		t.Helper()
		if l.Phase() != phase || l.Opening() != opening || l.Pending() != pending || l.Queued() != queued || l.Held() != held || l.Present() != present {
			t.Errorf("phase %v opening %v pending %v queued %d held %d present %d", l.Phase(), l.Opening(), l.Pending(), l.Queued(), l.Held(), l.Present())
		}
	}
	check(Idle, true, false, 0, 0, 2)
	runReader(l, cohortOf(2, cautiousAttempt())[:3]...)
	check(Querying, true, false, 0, 0, 2)
	l.Handle(plane("evpath"))
	check(Registering, true, true, 0, 0, 2)
	l.Handle(response(nil))
	check(Streaming, false, false, 0, 0, 2)
	runReader(l, on(arrives(0)), on(discarded(1)), on(arrives(2)))
	check(Streaming, false, false, 2, 0, 2)
	l.Handle(asks(1, 0))
	check(Streaming, false, false, 1, 1, 2)
	if got := l.Laggards(); len(got) != 2 {
		t.Errorf("laggards %v", got)
	}
	l.Handle(memberReleases(0, 0))
	if got := l.Laggards(); len(got) != 1 || got[0] != 1 {
		t.Errorf("laggards %v, want 1", got)
	}
	l.Handle(memberReleases(1, 0))
	if got := l.Laggards(); got != nil {
		t.Errorf("laggards %v, want none", got)
	}
	l.Handle(memberLeaves(1))
	check(Streaming, false, false, 1, 0, 1)
	l.Handle(memberLeaves(0))
	check(Parting, false, true, 0, 0, 0)
	l.Handle(Settled{})
	check(Closed, false, false, 0, 0, 0)
	if l.Plane() != "evpath" || l.Failure() != nil || l.Skipped() != 0 {
		t.Errorf("plane %q failure %v skipped %d", l.Plane(), l.Failure(), l.Skipped())
	}
	for p := Idle; p <= Closed; p++ {
		if p.String() == "" {
			t.Errorf("phase %d has no name", p)
		}
	}
}

// TestReaderLeaderWakes: each change of phase, and each member that goes, wakes
// whoever waits for it.
func TestReaderLeaderWakes(t *testing.T) {
	for name, lines := range readerTable {
		l := NewReaderLeader(testReaderConfig(1))
		for i, at := range lines {
			phase, present := l.Phase(), l.Present()
			woken := false
			for _, a := range l.Handle(at.do) {
				woken = woken || a == ReaderAction(Wake{})
			}
			if changed := l.Phase() != phase || l.Present() != present; changed && !woken {
				t.Errorf("%s: %s: nobody was woken", name, nameReaderEvent(i, at.do))
			}
		}
	}
}

// TestReaderErrors: what people read names the ranks, the texts, the cure.
func TestReaderErrors(t *testing.T) {
	var plane *PlaneError
	for name, c := range map[string]struct {
		n     int
		lines []line
		is    error
		parts []string
	}{
		"plane":      {1, readerTable["plane we lack"], ErrPlane, []string{"ucx", "evpath", "DataTransport", "WAN"}},
		"marshal":    {1, readerTable["marshalling we lack"], ErrMarshal, []string{"BP5", "MarshalMethod"}},
		"parameters": {2, cohortTable["other parameters"], ErrParam, []string{"rank 1", `"q"`, `"p"`}},
		"death":      {2, cohortTable["a rank dies"], ErrRankLost, []string{"rank 1", errTest.Error()}},
		"pattern":    {2, cohortTable["Peer pattern is refused"], ErrParam, []string{"CPCommPattern", "Min"}},
		"writer":     {1, readerTable["link lost without WriterClose"], ErrWriterLost, []string{"after step 0", errTest.Error()}},
		"evicted":    {1, configTable["evicted"].lines, ErrEvicted, []string{"after step 0: evicted: slow: 12 steps behind"}},
		"failed":     {1, configTable["the writer says that it failed"].lines, ErrWriterLost, []string{"before the first step", "rank 3 is lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewReaderLeader(testReaderConfig(c.n))
			runReader(l, c.lines...)
			err := l.Failure()
			if !errors.Is(err, c.is) {
				t.Fatalf("%v is not %v", err, c.is)
			}
			if name == "plane" && !errors.As(err, &plane) {
				t.Error("not a PlaneError")
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
		})
	}
}

// TestEvictedWithoutReason keeps the error whole if the writer gives none.
func TestEvictedWithoutReason(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(1))
	runReader(l, openingBy(weftAttempt(), on(closes(sstmsg.CloseEvicted, "")))...)
	if err := l.Failure(); !errors.Is(err, ErrEvicted) || strings.HasSuffix(err.Error(), ": ") {
		t.Errorf("%q", err)
	}
}

// TestPassedOverIsCopied: what the members get of a step that is not delivered
// does not refer to memory that goes back in the same breath.
func TestPassedOverIsCopied(t *testing.T) {
	for name, whole := range map[string]bool{"passed over": true, "discarded": false} {
		t.Run(name, func(t *testing.T) {
			cfg := testReaderConfig(1)
			cfg.Latest = true
			l := NewReaderLeader(cfg)
			runReader(l, opening()...)
			memory := []byte("formatformatid")
			m := &sstmsg.TimestepMetadata{Step: 0, CohortSize: 1, PreloadMode: 1,
				Formats:    []sstmsg.FormatBlock{{Body: sstmsg.Blob{memory[:6]}, ID: sstmsg.Blob{memory[6:12], memory[12:]}}},
				Attributes: []sstmsg.Block{{Data: sstmsg.Blob{memory[:6]}}},
			}
			if whole {
				m.Metadata = []sstmsg.Block{{Data: sstmsg.Blob{memory}}}
			}
			actions := l.Handle(FromWriter{Msg: m, Free: func() { clear(memory) }})
			actions = append(actions, l.Handle(arrives(1))...)
			var got *StepTo
			for _, a := range append(actions, l.Handle(asks(0, 0))...) {
				switch a := a.(type) {
				case Recycle:
					a.Free()
				case ToAll:
					if s := a.Msg.(*StepTo); s.Index < 0 {
						got = s
					}
				}
			}
			if got == nil || got.Msg.Metadata != nil || len(got.Msg.Attributes) != 1 || len(got.Msg.Formats) != 1 {
				t.Fatalf("%+v", got)
			}
			f := got.Msg.Formats[0]
			if string(f.Body.Bytes()) != "format" || string(f.ID.Bytes()) != "formatid" || string(got.Msg.Attributes[0].Data.Bytes()) != "format" {
				t.Errorf("%q %q", f.Body.Bytes(), f.ID.Bytes())
			}
		})
	}
}

// TestResponseIsKept: the response outlives the message it came in.
func TestResponseIsKept(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(1))
	runReader(l, opening()[:3]...)
	memory := []byte("address")
	m := goodResponse()
	m.Rdma = []sstmsg.RdmaWriter{{WriterID: 1, Address: sstmsg.Blob{memory}}}
	for _, a := range l.Handle(from(m)) {
		if all, ok := a.(ToAll); ok {
			clear(memory)
			if got := all.Msg.(*ReaderOpened).Response.Rdma[0].Address.Bytes(); string(got) != "address" {
				t.Errorf("%q", got)
			}
		}
	}
}

// TestSoloIsCheap: one step of a cohort of one costs few allocations.
func TestSoloIsCheap(t *testing.T) {
	l, m := NewReaderLeader(testReaderConfig(1)), NewReaderMember(MemberReaderConfig{Leads: true})
	free := func() {}
	pass := func(actions []ReaderAction) {
		for _, a := range actions {
			if all, ok := a.(ToAll); ok {
				m.Handle(FromLeader{all.Msg})
			}
		}
	}
	answer := func(actions []ReaderMemberAction) {
		for _, a := range actions {
			if up, ok := a.(ToLeader); ok {
				pass(l.Handle(FromMember{0, up.Msg}))
			}
		}
	}
	m.Handle(MemberStart{})
	for _, at := range opening() {
		pass(l.Handle(at.do))
	}
	msg := &sstmsg.TimestepMetadata{Metadata: []sstmsg.Block{{}}, Attributes: []sstmsg.Block{{}}, Step: -1}
	step := func() {
		msg.Step++
		pass(l.Handle(FromWriter{Msg: msg, Free: free}))
		answer(m.Handle(Next{}))
		if m.Handle(Next{}); len(m.open) != 1 {
			t.Fatal("no step")
		}
		answer(m.Handle(Release{msg.Step}))
	}
	const most = 30
	if n := testing.AllocsPerRun(1000, step); n > most {
		t.Errorf("%v allocations for a step, want at most %d", n, most)
	} else {
		t.Logf("%v allocations for a step", n)
	}
}

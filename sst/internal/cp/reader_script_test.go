package cp

import (
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

// oneTimeResponse is of a writer that sends attributes once.
func oneTimeResponse() ReaderEvent {
	return response(func(m *sstmsg.WriterResponse) { m.Params.UseOneTimeAttributes = 1 })
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

// inMode changes the preload mode of a step.
func inMode(mode int32, e ReaderEvent) ReaderEvent {
	e.(FromWriter).Msg.(*sstmsg.TimestepMetadata).PreloadMode = mode
	return e
}

// discardedWith is a discarded step that brings an attribute.
func discardedWith(n int64, text string) ReaderEvent {
	e := discarded(n)
	e.(FromWriter).Msg.(*sstmsg.TimestepMetadata).Attributes[0].Data = sstmsg.ByteBlob([]byte(text))
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

func memberFails(m int, err error) ReaderEvent {
	return FromMember{m, &StreamFailed{NewFault(err)}}
}

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

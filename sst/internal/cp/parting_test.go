package cp

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// cautious returns a reader of an ADIOS2 writer that is streaming.
func cautious(t *testing.T) *Reader {
	t.Helper()
	r := NewReader(ReaderConfig{StreamID: 7, Planes: []string{"evpath"}, Query: 1, Register: 2, Cautious: true})
	r.Handle(Start{})
	r.Handle(FromWriter{Msg: &sstmsg.DPQueryResponse{Condition: 1, DataPlane: "evpath"}})
	r.Handle(FromWriter{Msg: accept()})
	if r.Phase() != Streaming {
		t.Fatalf("phase %v, want streaming", r.Phase())
	}
	return r
}

func accept() *sstmsg.WriterResponse {
	return &sstmsg.WriterResponse{
		Condition: 2, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		CP: []sstmsg.CPWriter{{WriterID: 42}}, Evpath: []sstmsg.EvpathWriter{{WriterID: 43}},
	}
}

// said reports whether the actions say ReaderClose, and whether they drop the link.
func said(actions []ReaderAction) (goodbye, dropped bool) {
	for _, a := range actions {
		switch a := a.(type) {
		case SendToWriter:
			_, is := a.Msg.(*sstmsg.ReaderClose)
			goodbye = goodbye || is
		case DropLink:
			dropped = true
		}
	}
	return goodbye, dropped
}

// A reader that leaves an ADIOS2 writer says so after a whole step, after some
// quiet, or after the writer's own close, and never before.
func TestPartingWaits(t *testing.T) {
	for name, end := range map[string]ReaderEvent{
		"a step":       FromWriter{Msg: &sstmsg.TimestepMetadata{Step: 0, Metadata: []sstmsg.Block{{}}}},
		"quiet":        Settled{},
		"writer close": FromWriter{Msg: &sstmsg.WriterClose{FinalStep: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := cautious(t)
			if goodbye, dropped := said(r.Handle(Leave{})); goodbye || dropped || r.Phase() != Parting || !r.Pending() {
				t.Fatalf("it left at once: goodbye %v, dropped %v, phase %v", goodbye, dropped, r.Phase())
			}
			if goodbye, dropped := said(r.Handle(Leave{})); goodbye || dropped {
				t.Error("leaving twice is not leaving with care")
			}
			if goodbye, dropped := said(r.Handle(end)); !goodbye || !dropped || r.Phase() != Closed || r.Pending() {
				t.Errorf("goodbye %v, dropped %v, phase %v", goodbye, dropped, r.Phase())
			}
			if goodbye, _ := said(r.Handle(Settled{})); goodbye {
				t.Error("a second ReaderClose")
			}
		})
	}
}

func TestPartingEndsWithTheLink(t *testing.T) {
	r := cautious(t)
	r.Handle(Leave{})
	if goodbye, dropped := said(r.Handle(WriterLost{})); goodbye || !dropped || r.Phase() != Closed {
		t.Errorf("goodbye %v, dropped %v, phase %v", goodbye, dropped, r.Phase())
	}
}

// An abandoned opening is left with the same care: the writer has just been told
// ReaderActivate, and takes the reader in.
func TestPartingAfterAbandonedOpening(t *testing.T) {
	r := NewReader(ReaderConfig{StreamID: 7, Planes: []string{"evpath"}, Query: 1, Register: 2, Cautious: true})
	r.Handle(Start{})
	r.Handle(FromWriter{Msg: &sstmsg.DPQueryResponse{Condition: 1, DataPlane: "evpath"}})
	r.Handle(Cancel{Err: errGone})
	if goodbye, _ := said(r.Handle(FromWriter{Msg: accept()})); goodbye || r.Phase() != Parting {
		t.Errorf("goodbye %v, phase %v", goodbye, r.Phase())
	}
	if goodbye, dropped := said(r.Handle(Settled{})); !goodbye || !dropped {
		t.Errorf("goodbye %v, dropped %v", goodbye, dropped)
	}
}

// After the writer's close nothing is in its way.
func TestNoPartingAfterWriterClose(t *testing.T) {
	r := cautious(t)
	r.Handle(FromWriter{Msg: &sstmsg.WriterClose{FinalStep: -1}})
	if goodbye, dropped := said(r.Handle(Leave{})); !goodbye || !dropped {
		t.Errorf("goodbye %v, dropped %v", goodbye, dropped)
	}
}

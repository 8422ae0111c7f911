package cp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// This file renders events, actions and messages of writers, so that tests read
// as a script.

// writerMsgText renders a message between the leader and its members.
func writerMsgText(m Message) string {
	switch m := m.(type) {
	case *WriterHello:
		return fmt.Sprintf("hello of %d", m.Ranks)
	case *Contribute:
		return fmt.Sprintf("share of try %d", m.Try)
	case *Room:
		return fmt.Sprintf("room for try %d", m.Try)
	case *Withdraw:
		return fmt.Sprintf("withdraw from try %d", m.Try)
	case *Admitted:
		return fmt.Sprintf("admitted [%d]", m.Reader)
	case *PushFailed:
		return fmt.Sprintf("push failed [%d]", m.Reader)
	case *Finished:
		return "finished"
	case *Welcome:
		return fmt.Sprintf("welcome at %d of %d", m.Base, m.Ranks)
	case *Started:
		return "started"
	case *Go:
		return fmt.Sprintf("go %d", m.Try)
	case *Verdict:
		return fmt.Sprintf("%s %d", [...]string{"published", "discarded", "aborted"}[m.Outcome], m.Step)
	case *Admit:
		return strings.TrimSuffix(fmt.Sprintf("admit [%d] %s", m.Reader, m.Plane), " "+PlaneEvpath)
	case *Replane:
		return fmt.Sprintf("replane [%d] %s", m.Reader, m.Plane)
	case *Dismiss:
		return fmt.Sprintf("dismiss [%d]", m.Reader)
	case *Push:
		return fmt.Sprintf("push %d [%d]", m.Step, m.Reader)
	case *Free:
		return fmt.Sprintf("free %d", m.Step)
	case *Drained:
		return "drained"
	case *StreamFailed:
		return "failed: " + writerErrText(m.Cause)
	}
	return fmt.Sprintf("%T", m)
}

// writerErrText names an error by the known ones that it wraps.
func writerErrText(err error) string {
	if f, ok := err.(Fault); ok && f.None() || err == nil {
		return "nil"
	}
	var names []string
	for _, k := range []struct {
		name string
		err  error
	}{
		{"ErrClosed", ErrClosed},
		{"ErrRankLost", ErrRankLost},
		{"ErrEvicted", ErrEvicted},
		{"ErrParam", ErrParam},
		{"ErrProtocol", ErrProtocol},
		{"ErrStepAborted", ErrStepAborted},
		{"errTest", errTest},
	} {
		if errors.Is(err, k.err) {
			names = append(names, k.name)
		}
	}
	if names == nil {
		return nameErr(err)
	}
	return strings.Join(names, "+")
}

// writerActionText renders an action of a leader. What goes to all members stands
// as "all:".
func writerActionText(a WriterAction) string {
	switch a := a.(type) {
	case ToMember:
		return fmt.Sprintf("rank %d: %s", a.Member, writerMsgText(a.Msg))
	case ToAll:
		return "all: " + writerMsgText(a.Msg)
	case SendToReader:
		return fmt.Sprintf("[%d]: %s", a.Reader, writerSentText(a.Msg))
	case DropReader:
		word := "drop"
		if a.Cut {
			word = "cut"
		}
		return fmt.Sprintf("%s [%d]: %s", word, a.Reader, writerErrText(a.Err))
	case PublishContact:
		return "publish contact"
	case Lagging:
		return fmt.Sprintf("[%d] lags %d", a.Reader, a.Steps)
	case Watermark:
		return fmt.Sprintf("watermark: %d bytes, %d steps [%d]", a.Bytes, a.Steps, a.Reader)
	case Notice:
		return "notice"
	case Changed:
		return "changed"
	}
	return fmt.Sprintf("%T", a)
}

// writerSentText renders what the tests look at in a message to a reader.
func writerSentText(m sstmsg.Message) string {
	switch m := m.(type) {
	case *sstmsg.TimestepMetadata:
		s := fmt.Sprintf("step %d", m.Step)
		if m.Metadata == nil {
			s = fmt.Sprintf("no step %d", m.Step)
		}
		for _, f := range m.Formats {
			s += " +" + string(f.ID.Bytes())
		}
		for rank, b := range m.Attributes {
			if b.Data.Len() > 0 {
				s += fmt.Sprintf(" %d:%s", rank, b.Data.Bytes())
			}
		}
		for rank, b := range m.Native {
			if b.Data.Len() > 0 {
				s += fmt.Sprintf(" at %d:%s", rank, b.Data.Bytes())
			}
		}
		if m.PreloadMode != 0 {
			s += " preloaded"
		}
		return s
	case *sstmsg.WriterClose:
		s := fmt.Sprintf("close after %d", m.FinalStep)
		switch m.Code {
		case sstmsg.CloseEvicted:
			s += ", evicted"
		case sstmsg.CloseFailed:
			s += ", failed"
		}
		return s
	case *sstmsg.WriterResponse:
		s := fmt.Sprintf("response, next %d", m.NextStep)
		if m.Native != nil {
			s += ", native"
		}
		for _, w := range m.Native {
			s += " " + w.Contact
		}
		return s
	}
	return sstmsg.Name(m)
}

func writerActionTexts(actions []WriterAction) []string {
	var out []string
	for _, a := range actions {
		if a != (Changed{}) {
			out = append(out, writerActionText(a))
		}
	}
	return out
}

// writerEventText renders an event of a leader.
func writerEventText(e WriterEvent) string {
	switch e := e.(type) {
	case FromMember:
		return fmt.Sprintf("rank %d: %s", e.Member, writerMsgText(e.Msg))
	case FromReader:
		if m, ok := e.Msg.(*sstmsg.ReleaseTimestep); ok {
			return fmt.Sprintf("[%d]: release %d", e.Reader, m.Step)
		}
		return fmt.Sprintf("[%d]: %s", e.Reader, sstmsg.Name(e.Msg))
	case Register:
		return fmt.Sprintf("[%d] registers, weft %v, observer %d", e.Reader, e.Weft, e.Msg.Observer)
	case ReaderLost:
		return fmt.Sprintf("[%d] is lost", e.Reader)
	case MemberLost:
		return fmt.Sprintf("rank %d is lost", e.Member)
	}
	return fmt.Sprintf("%T", e)
}

// writerMemberText renders an action of a member.
func writerMemberText(a WriterMemberAction) string {
	switch a := a.(type) {
	case ToLeader:
		return "say " + writerMsgText(a.Msg)
	case Welcomed:
		return fmt.Sprintf("welcomed at %d of %d", a.Base, a.Ranks)
	case AdmitReader:
		return fmt.Sprintf("admit [%d]", a.Reader)
	case ReplaneReader:
		return fmt.Sprintf("replane [%d] %s", a.Reader, a.Plane)
	case DismissReader:
		return fmt.Sprintf("dismiss [%d]", a.Reader)
	case PushStep:
		return fmt.Sprintf("push %d [%d]", a.Step, a.Reader)
	case FreeStep:
		return fmt.Sprintf("free %d", a.Step)
	case DropTry:
		return fmt.Sprintf("drop %d", a.Step)
	case Changed:
		return "changed"
	}
	return fmt.Sprintf("%T", a)
}

func writerMemberTexts(actions []WriterMemberAction) []string {
	var out []string
	for _, a := range actions {
		if a != (Changed{}) {
			out = append(out, writerMemberText(a))
		}
	}
	return out
}

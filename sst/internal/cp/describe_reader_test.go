package cp

import (
	"errors"
	"fmt"
	"strings"
)

// readerErrNames are the errors that descriptions of readers tell apart.
var readerErrNames = []struct {
	name string
	err  error
}{
	{"ErrPlane", ErrPlane},
	{"ErrMarshal", ErrMarshal},
	{"ErrParam", ErrParam},
	{"ErrTooLate", ErrTooLate},
	{"ErrWriterLost", ErrWriterLost},
	{"ErrRankLost", ErrRankLost},
	{"ErrEvicted", ErrEvicted},
	{"ErrClosed", ErrClosed},
	{"ErrOutOfOrder", ErrOutOfOrder},
	{"ErrProtocol", ErrProtocol},
	{"errTest", errTest},
	{"errGone", errGone},
}

// readerErr names err by identity, never by text. Faults keep only the errors
// that users test for.
func readerErr(err error) string {
	if err == nil {
		return "nil"
	}
	var names []string
	for _, e := range readerErrNames {
		if errors.Is(err, e.err) {
			names = append(names, e.name)
		}
	}
	if names == nil {
		return "another error"
	}
	return strings.Join(names, "+")
}

// nameCohortMsg renders what the tests look at in a message between ranks.
func nameCohortMsg(m Message) string {
	switch m := m.(type) {
	case *Ask:
		return fmt.Sprintf("ask %d", m.Index)
	case *Released:
		return fmt.Sprintf("released %d", m.Step)
	case *StepTo:
		if m.Msg == nil {
			return "no step"
		}
		what := fmt.Sprintf("#%d", m.Index)
		if m.Index < 0 {
			what = "not"
		}
		s := fmt.Sprintf("%s step %d", what, m.Msg.Step)
		if m.Skipped > 0 {
			s += fmt.Sprintf(" skipped %d", m.Skipped)
		}
		if m.Msg.PreloadMode != 0 {
			s += fmt.Sprintf(" mode %d", m.Msg.PreloadMode)
		}
		for _, f := range m.Msg.Formats {
			s += " +" + string(f.ID.Bytes())
		}
		for _, a := range m.Msg.Attributes {
			if a.Data.Len() > 0 {
				s += " @" + string(a.Data.Bytes())
			}
		}
		return s
	case *TryRoutes:
		return fmt.Sprintf("try routes %d", m.Try)
	case *Routed:
		return fmt.Sprintf("routed %d of %d", m.Native, m.Total)
	case *ReaderOpened:
		return strings.TrimSpace("readeropened " + strings.TrimPrefix(m.Plane, "evpath"))
	case *StreamEnd:
		return "end " + readerErr(m.Cause.Err())
	case *WriterGone:
		return "writer gone " + readerErr(m.Cause.Err())
	case *StreamFailed:
		return "failed " + readerErr(m.Cause.Err())
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "*cp."))
}

// nameLeader renders the actions of a reader's leader. Wake is left out: it
// comes with each phase, and TestReaderLeaderWakes looks at it.
func nameLeader(actions []ReaderAction) []string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case SendToWriter:
			s := "send " + nameMsg(a.Msg)
			if a.Rank > 0 {
				s += fmt.Sprintf(" [%d]", a.Rank)
			}
			out = append(out, s)
		case ToAll:
			out = append(out, "all: "+nameCohortMsg(a.Msg))
		case ToMember:
			out = append(out, fmt.Sprintf("%d: %s", a.Member, nameCohortMsg(a.Msg)))
		case OpenFailed:
			out = append(out, "open failed: "+readerErr(a.Err))
		case TryAgain:
			out = append(out, "try again: "+readerErr(a.Err))
		case Recycle:
			out = append(out, "recycle")
		case Part:
			out = append(out, "part")
		case DropLink:
			out = append(out, "drop link")
		case Wake:
		default:
			out = append(out, fmt.Sprintf("%T", a))
		}
	}
	return out
}

// nameMember renders the actions of a reader's member.
func nameMember(actions []ReaderMemberAction) []string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case ToLeader:
			out = append(out, "tell "+nameCohortMsg(a.Msg))
		case Route:
			out = append(out, fmt.Sprintf("route %d", a.Try))
		case Opened:
			out = append(out, "opened")
		case OpenFailed:
			out = append(out, "open failed: "+readerErr(a.Err))
		case Absorb:
			out = append(out, strings.Replace(nameCohortMsg(&StepTo{Index: -1, Msg: a.Msg}), "not step", "absorb", 1))
		case Deliver:
			out = append(out, fmt.Sprintf("deliver %d", a.Msg.Step))
		case EndOfStream:
			out = append(out, "end: "+readerErr(a.Err))
		case Forget:
			out = append(out, fmt.Sprintf("forget %d", a.Step))
		case Expect:
			out = append(out, fmt.Sprintf("expect %d", a.Step))
		case Drop:
			s := fmt.Sprintf("drop %d", a.To)
			if a.From != a.To {
				s = fmt.Sprintf("drop %d-%d", a.From, a.To)
			}
			out = append(out, s)
		case FailReads:
			out = append(out, "fail reads: "+readerErr(a.Err))
		case Wake:
			out = append(out, "wake")
		default:
			out = append(out, fmt.Sprintf("%T", a))
		}
	}
	return out
}

// nameReaderEvent renders an event of a script.
func nameReaderEvent(i int, e any) string {
	switch e := e.(type) {
	case FromWriter:
		return fmt.Sprintf("line %d: from writer: %s", i, nameMsg(e.Msg))
	case FromMember:
		return fmt.Sprintf("line %d: from member %d: %s", i, e.Member, nameCohortMsg(e.Msg))
	case FromLeader:
		return fmt.Sprintf("line %d: from leader: %s", i, nameCohortMsg(e.Msg))
	}
	return fmt.Sprintf("line %d: %T %+v", i, e, e)
}

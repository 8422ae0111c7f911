package cp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// errNames are the errors that a description tells apart.
var errNames = []struct {
	name string
	err  error
}{
	{"ErrPlane", ErrPlane},
	{"ErrMarshal", ErrMarshal},
	{"ErrTooLate", ErrTooLate},
	{"ErrWriterLost", ErrWriterLost},
	{"ErrOutOfOrder", ErrOutOfOrder},
	{"errUnexpected", errUnexpected},
	{"errBadResponse", errBadResponse},
	{"errTest", errTest},
	{"errGone", errGone},
}

var errTest = errors.New("a reason given by the test")

// nameErr names err by identity, never by text.
func nameErr(err error) string {
	if err == nil {
		return "nil"
	}
	var names []string
	for _, e := range errNames {
		if errors.Is(err, e.err) {
			names = append(names, e.name)
		}
	}
	if names == nil {
		return "another error"
	}
	return strings.Join(names, "+")
}

// nameMsg renders what the tests look at in a message.
func nameMsg(m sstmsg.Message) string {
	switch m := m.(type) {
	case *sstmsg.ReleaseTimestep:
		return fmt.Sprintf("ReleaseTimestep %d to %d", m.Step, m.WriterID)
	case *sstmsg.ReaderActivate:
		return fmt.Sprintf("ReaderActivate to %d", m.WriterID)
	case *sstmsg.ReaderPlane:
		return fmt.Sprintf("ReaderPlane %s to %d", m.Plane, m.WriterID)
	case *sstmsg.ReaderClose:
		return fmt.Sprintf("ReaderClose to %d", m.WriterID)
	case *sstmsg.WriterClose:
		return fmt.Sprintf("WriterClose %d to %d", m.FinalStep, m.ReaderID)
	case *sstmsg.WriterResponse:
		return fmt.Sprintf("WriterResponse next %d", m.NextStep)
	case *sstmsg.TimestepMetadata:
		return nameStep(m)
	}
	return sstmsg.Name(m)
}

func nameStep(m *sstmsg.TimestepMetadata) string {
	s := fmt.Sprintf("step %d to %d", m.Step, m.ReaderID)
	if m.Metadata == nil {
		s += " discarded"
	}
	for _, f := range m.Formats {
		s += " +" + string(f.ID.Bytes())
	}
	if len(m.Attributes) > 0 && m.Attributes[0].Data.Len() > 0 {
		s += " attr " + string(m.Attributes[0].Data.Bytes())
	}
	if m.PreloadMode != 0 {
		s += fmt.Sprintf(" mode %d", m.PreloadMode)
	}
	return s
}

// same compares a description with what is wanted; nil and empty are alike.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s", what, cmp.Diff(want, got))
	}
}

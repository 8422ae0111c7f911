package cp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
)

// The page that shows users the states of a writer, and what frames them there.
const (
	writerPage       = "docs/sst-behaviour-writer.md"
	writerPageMarker = "<!-- writer-member-states -->"
	pageMarkerEnd    = "<!-- end -->"
)

// writerState names where a member stands, as the page does.
func writerState(m *WriterMember) string {
	if m.Phase() != WriterStarted {
		return m.Phase().String()
	}
	_, decided := m.LastVerdict()
	switch {
	case m.Open():
		return "filling"
	case m.CanBegin():
		return "ready"
	case !decided && m.withdrawn && m.ended:
		return "takingBack"
	case !decided && m.withdrawn:
		return "givingUp"
	}
	return "ended"
}

// writerStimuli is what can happen to a member, in the words of the page; nil:
// not now.
var writerStimuli = []struct {
	name string
	make func(*WriterMember) WriterMemberEvent
}{
	{"every rank is there", always(hears(&Welcome{}))},
	{"enough readers", func(m *WriterMember) WriterMemberEvent { return when(m.Phase() == WriterWelcomed, hears(&Started{})) }},
	{"BeginStep", func(m *WriterMember) WriterMemberEvent { return when(m.CanBegin(), BeginTry{}) }},
	{"End", func(m *WriterMember) WriterMemberEvent { return when(m.Open(), endsTry()) }},
	{"Abort, cancelled", func(m *WriterMember) WriterMemberEvent { return when(m.begun > 0 && !m.decided, AbortTry{errTest}) }},
	{"published", func(m *WriterMember) WriterMemberEvent { return due(m, Published) }},
	{"discarded", func(m *WriterMember) WriterMemberEvent { return due(m, Discarded) }},
	{"aborted", func(m *WriterMember) WriterMemberEvent { return due(m, Aborted) }},
	{"Finish", always(MemberFinish{})},
	{"readers are done", func(m *WriterMember) WriterMemberEvent {
		return when(m.Phase() == WriterFinished, hears(&Drained{}))
	}},
	{"a rank fails", always(LeaderLost{errTest})},
	{"a rank fails", always(hears(&StreamFailed{NewFault(ErrRankLost)}))},
}

func always(e WriterMemberEvent) func(*WriterMember) WriterMemberEvent {
	return func(*WriterMember) WriterMemberEvent { return e }
}

func when(ok bool, e WriterMemberEvent) WriterMemberEvent {
	if ok {
		return e
	}
	return nil
}

// due is the verdict on the newest try, if the leader may give it now.
func due(m *WriterMember, o Outcome) WriterMemberEvent {
	ok := m.Phase() == WriterStarted && m.begun > 0 && !m.decided && (m.ended || o == Aborted)
	return when(ok, hears(&Verdict{Try: m.begun - 1, Step: m.next, Outcome: o, Cause: NewFault(ErrStepAborted)}))
}

// writerDiagram walks a member through everything that can happen to it, and
// draws the ways that it takes.
func writerDiagram() string {
	type state struct {
		path []WriterMemberEvent
		name string
	}
	replay := func(path []WriterMemberEvent) *WriterMember {
		m := NewWriterMember(MemberConfig{})
		for _, e := range path {
			m.Handle(e)
		}
		return m
	}
	start := []WriterMemberEvent{MemberStart{}}
	todo := []state{{start, writerState(replay(start))}}
	seen := map[string]bool{todo[0].name: true}
	lines := []string{"stateDiagram-v2", "    [*] --> " + todo[0].name + ": Create"}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		ways := map[string][]string{}
		var order []string
		for _, x := range writerStimuli {
			e := x.make(replay(s.path))
			if e == nil {
				continue
			}
			path := append(slices.Clone(s.path), e)
			to := writerState(replay(path))
			if to == s.name {
				continue
			}
			if ways[to] == nil {
				order = append(order, to)
			}
			if !slices.Contains(ways[to], x.name) {
				ways[to] = append(ways[to], x.name)
			}
			if !seen[to] {
				seen[to] = true
				todo = append(todo, state{path, to})
			}
		}
		for _, to := range order {
			lines = append(lines, fmt.Sprintf("    %s --> %s: %s", s.name, to, strings.Join(ways[to], " | ")))
		}
		if order == nil {
			lines = append(lines, fmt.Sprintf("    %s --> [*]", s.name))
		}
	}
	return strings.Join(lines, "\n")
}

// TestWriterStatesOnThePage: the diagram that users see is the machine's.
func TestWriterStatesOnThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), writerPage))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), writerPageMarker+"\n")
	got, _, ok2 := strings.Cut(rest, pageMarkerEnd)
	if want := "```mermaid\n" + writerDiagram() + "\n```\n"; !ok || !ok2 || got != want {
		t.Errorf("%s must have, between %s and %s:\n%s\n%s", writerPage, writerPageMarker, pageMarkerEnd, want, cmp.Diff(got, want))
	}
}

package cp

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// readerDoc is the page that shows how a reader behaves. Its diagrams stand
// between markers and are what the machines really do.
const readerDoc = "docs/sst-behaviour.md"

// readerTriggers say what users know events by; a message that is not listed has
// its name on the wire.
var readerTriggers = map[string]string{
	"Attempt":          "writer found",
	"WriterLost":       "link lost",
	"Cancel":           "time is up",
	"LeaveNow":         "rank 0 leaves",
	"Left":             "last rank closes",
	"MemberLost":       "a rank dies",
	"ReaderHello":      "last rank opens",
	"Settled":          "quiet",
	"Ask":              "last step taken",
	"Routed":           "last rank has tried",
	"timestepMetadata": "a step",
	"MemberStart":      "Open",
	"MemberLeave":      "Close",
	"Next":             "BeginStep at the end",
	"LeaderLost":       "rank 0 dies",
	"ReaderOpened":     "all are open",
	"StreamFailed":     "the cohort fails",
}

// triggerOf names an event: by the message, or by what is special about it.
func triggerOf(e any) string {
	name := func(v any) string { return strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", v), "*"), "cp.") }
	switch e := e.(type) {
	case FromWriter:
		switch m := e.Msg.(type) {
		case *sstmsg.DPQueryResponse:
			switch m.DataPlane {
			case PlaneEnded:
				return "the stream has ended"
			case PlaneEvpath, PlaneNative:
				return "DPQueryResponse"
			}
			return "no plane in common"
		case *sstmsg.WriterClose:
			if m.Code != sstmsg.CloseNormal {
				return "WriterClose with a reason"
			}
		case *sstmsg.WriterResponse:
			if len(m.CP) == 0 || m.CP[0].WriterID == 0 {
				return "nonsense"
			}
		case *sstmsg.ReaderPlane, *sstmsg.ReaderActivate, *sstmsg.ReleaseTimestep:
			return "nonsense"
		}
		return sstmsg.Name(e.Msg)
	case FromMember:
		if m, ok := e.Msg.(*ReaderHello); ok && m.Params != "p" {
			return "ranks differ in parameters"
		}
		switch m := e.Msg.(type) {
		case *StreamFailed:
			return "a rank fails"
		case *Routed:
			if m.Native < 0 || m.Native > 2 {
				return "nonsense"
			}
		}
		return name(e.Msg)
	case FromLeader:
		if m, ok := e.Msg.(*ReaderOpened); ok && m.Response == nil {
			return "nonsense"
		}
		return name(e.Msg)
	}
	return name(e)
}

// readerEdge is a change of phase.
type readerEdge struct{ from, to int }

// readerDiagram collects the changes of phase of one machine.
type readerDiagram struct {
	name  func(phase int) string
	edges map[readerEdge][]string
}

func (d *readerDiagram) saw(from, to int, e any) {
	if from == to {
		return
	}
	trigger := triggerOf(e)
	if t, ok := readerTriggers[trigger]; ok {
		trigger = t
	}
	switch {
	case trigger == "a step" && d.name(to) == Broken.String():
		trigger = "nonsense"
	case trigger == "DPQueryResponse" && d.name(to) == Closed.String():
		trigger = "no plane in common"
	}
	edge := readerEdge{from, to}
	if !slices.Contains(d.edges[edge], trigger) {
		d.edges[edge] = append(d.edges[edge], trigger)
	}
}

// render draws the diagram for mermaid.
func (d *readerDiagram) render() string {
	var edges []readerEdge
	for e := range d.edges {
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b readerEdge) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var s strings.Builder
	fmt.Fprintf(&s, "```mermaid\nstateDiagram-v2\n    [*] --> %s\n", d.name(0))
	for _, e := range edges {
		slices.Sort(d.edges[e])
		fmt.Fprintf(&s, "    %s --> %s: %s\n", d.name(e.from), d.name(e.to), strings.Join(d.edges[e], ", "))
	}
	s.WriteString("```\n")
	return s.String()
}

// leaderDiagram is what all scripts of leaders go through.
func leaderDiagram() string {
	d := &readerDiagram{name: func(p int) string { return Phase(p).String() }, edges: map[readerEdge][]string{}}
	follow := func(cfg ReaderConfig, lines []line) {
		l := NewReaderLeader(cfg)
		for _, at := range lines {
			before := l.Phase()
			l.Handle(at.do)
			d.saw(int(before), int(l.Phase()), at.do)
		}
	}
	for _, lines := range readerTable {
		follow(testReaderConfig(1), lines)
	}
	for _, lines := range cohortTable {
		follow(testReaderConfig(2), lines)
	}
	for _, c := range configTable {
		cfg := testReaderConfig(1)
		if c.change != nil {
			c.change(&cfg)
		}
		follow(cfg, c.lines)
	}
	for _, c := range routesTable {
		follow(nativeReaderConfig(2, c.forced), c.lines)
	}
	return d.render()
}

// memberDiagram is what all scripts of members go through.
func memberDiagram() string {
	name := func(p int) string { return strings.ReplaceAll(ReaderMemberPhase(p).String(), " ", "_") }
	d := &readerDiagram{name: name, edges: map[readerEdge][]string{}}
	for _, lines := range memberTable {
		m := NewReaderMember(testMemberConfig())
		for _, l := range lines {
			before := m.Phase()
			m.Handle(l.do)
			d.saw(int(before), int(m.Phase()), l.do)
		}
	}
	return d.render()
}

// TestReaderStateDiagrams compares the page with the machines; -update rewrites it.
func TestReaderStateDiagrams(t *testing.T) {
	path := filepath.Join(testutil.ModuleRoot(t), filepath.FromSlash(readerDoc))
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for marker, diagram := range map[string]string{"reader-states": leaderDiagram(), "reader-member-states": memberDiagram()} {
		text = betweenMarkers(t, text, marker, diagram)
	}
	if text == string(page) {
		return
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the diagrams of %s are not what the machines do (run with -update if the change is wanted); they should be:\n%s\n%s", readerDoc, leaderDiagram(), memberDiagram())
}

// betweenMarkers replaces what stands between <!-- name --> and <!-- /name -->.
func betweenMarkers(t *testing.T, text, name, content string) string {
	t.Helper()
	open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, ok := strings.Cut(text, open)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no markers %s", readerDoc, name)
	}
	return head + open + content + end + tail
}

package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// The native plane between processes: who reads by it, and who beside it by sockets.

// wantPlane checks, when both sides have ended, that a stream went by the plane: every
// rank of Weft says so, and that the reader asked for nothing that it could look at.
func wantPlane(t *testing.T, w, r side, plane string) {
	t.Helper()
	if w, ok := w.(*WeftPeer); ok {
		for _, info := range infos[sst.WriterInfo](w) {
			if len(info.Readers) != 1 || info.Readers[0].Plane != plane {
				t.Errorf("writer rank %d has the readers %+v, want one of plane %s", info.Rank, info.Readers, plane)
			}
		}
	}
	if r, ok := r.(*WeftPeer); ok {
		for _, info := range infos[sst.ReaderInfo](r) {
			wantReads(t, info, plane)
		}
	}
}

// wantReads checks how a reader rank has read.
func wantReads(t *testing.T, info sst.ReaderInfo, plane string) {
	t.Helper()
	if info.Plane != plane {
		t.Errorf("reader rank %d reads by plane %s, want %s", info.Rank, info.Plane, plane)
	}
	var all sst.WriterRank
	for _, w := range info.Writers {
		all.Requests += w.Requests
		all.Pushes += w.Pushes
		all.Viewed += w.Viewed
		all.Copied += w.Copied
	}
	looked, told := all.Viewed+all.Copied > 0, all.Requests+all.Pushes > 0
	if plane != "mixed" && (looked != (plane == "native") || told != (plane == "evpath")) {
		t.Errorf("reader rank %d, plane %s: %+v", info.Rank, plane, all)
	}
}

// TestNativeCohorts: cohorts of several shapes, as processes and in one, see the whole
// table by looking at it. A writer of N ranks and a reader of M have N routes each.
func TestNativeCohorts(t *testing.T) {
	const total = 5
	turn := 0
	for _, shape := range [][2]int{{1, 1}, {3, 2}, {2, 5}} {
		for _, local := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			turn++
			if !slices.Contains(testutil.Pick(t, []int{1, 3, 5, 6, 7, 9, 10, 12}, []int{turn}), turn) {
				continue
			}
			side := func(i int) kind {
				if local[i] {
					return localKind(shape[i])
				}
				return weftKind(shape[i])
			}
			c := cell{side(0), side(1)}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				c.play(t, "Auto", "native", total)
			})
		}
	}
}

// mixedSteps are the steps of a mixed stream; somebody goes in the middle.
const mixedSteps = 20

// mixed is a Weft writer of two processes with a reader of each kind: one that looks at
// its memory, one that may not, one of ADIOS2, and one in the process of writer rank 0.
type mixed struct {
	t                    *testing.T
	name                 string
	w                    *WeftPeer
	native, denied, real side
	weft                 string // the command
}

// start starts all, and returns when they have met.
func startMixed(t *testing.T, weft string, insideLeaves int) *mixed {
	t.Helper()
	dir := t.TempDir()
	m := &mixed{t: t, name: filepath.Join(dir, "zoo"), weft: weft}
	writer := weftKind(2)
	o := ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, WriterRanks: 2, WeftWriter: true}
	inside := o
	inside.StopAfter = insideLeaves
	m.w = WeftWriter(t, WriterOptions{
		Stream: Stream{Dir: dir, Ranks: 2, Vars: few, StepWait: true, Params: map[string]string{"RendezvousReaderCount": "4", "QueueLimit": "2"}},
		Steps:  mixedSteps, Inside: &inside,
	})
	m.native = startReader(t, weftKind(1), writer, o)
	m.real = startReader(t, adios2Kind(1), writer, o)
	o.NoSharedMemory = true
	m.denied = startReader(t, weftKind(1), writer, o)
	m.w.Expect("READY")
	return m
}

// step lets n steps pass.
func (m *mixed) step(n int) {
	m.t.Helper()
	for range n {
		m.w.Next()
		m.w.Expect("STEP ")
	}
}

// The readers, as writers list them.
const (
	byNative = "Weft native"
	bySocket = "Weft evpath"
	byADIOS2 = "ADIOS2 evpath"
)

// wantPlanes waits until both ranks of the writer, and weft stat, list these readers.
func (m *mixed) wantPlanes(when string, want ...string) {
	m.t.Helper()
	want = slices.Sorted(slices.Values(want))
	eventually(m.t, fmt.Sprintf("%s: readers %q", when, want), func() bool { return slices.Equal(m.w.Stats()[0].Planes, want) })
	cmd := testutil.Start(m.t, "", nil, m.weft, "stat", "--json", m.name)
	if err := cmd.Wait(); err != nil {
		m.t.Error(err)
	}
	var st sst.Stat
	if err := json.Unmarshal([]byte(cmd.Stdout()), &st); err != nil {
		m.t.Fatalf("weft stat: %v in %s", err, cmd.Output())
	}
	if got := planesOf(st.Readers); !slices.Equal(got, want) || st.Plane != "native,evpath" {
		m.t.Errorf("%s: weft stat lists %q of a writer with %s, want %q", when, got, st.Plane, want)
	}
}

// TestNativeMixedStream: all see the same, and when one of them is killed the others
// do not notice.
func TestNativeMixedStream(t *testing.T) {
	weft := buildWeft(t)
	all := []string{byNative, byNative, bySocket, byADIOS2}
	for _, victim := range []string{"nobody", "native", "denied", "ADIOS2", "inside", "writer"} {
		t.Run("victim "+victim, func(t *testing.T) {
			leaves := 0
			if victim == "inside" {
				leaves = mixedSteps / 2
			}
			m := startMixed(t, weft, leaves)
			m.wantPlanes("at first", all...)
			m.step(mixedSteps / 2)
			left := all
			switch victim {
			case "native":
				m.native.(*WeftPeer).Kill()
				left = all[1:]
			case "denied":
				m.denied.(*WeftPeer).Kill()
				left = []string{byNative, byNative, byADIOS2}
			case "ADIOS2":
				m.real.(*Peer).Kill()
				left = all[:3]
			case "inside":
				left = all[1:]
			case "writer":
				m.writerDies()
				return
			}
			m.wantPlanes("after the death of "+victim, left...)
			m.step(mixedSteps - mixedSteps/2)
			m.finish(victim)
		})
	}
}

// finish checks those that are left.
func (m *mixed) finish(victim string) {
	t := m.t
	t.Helper()
	if victim != "native" {
		r := m.native.(*WeftPeer)
		wantAll(t, r.StepNumbers(), mixedSteps)
		wantReads(t, infos[sst.ReaderInfo](r)[0], "native")
	}
	if victim != "denied" {
		r := m.denied.(*WeftPeer)
		wantAll(t, r.StepNumbers(), mixedSteps)
		wantReads(t, infos[sst.ReaderInfo](r)[0], "evpath")
	}
	if victim != "ADIOS2" {
		wantAll(t, m.real.(*Peer).Steps(zoo.Check{Ranks: 2, From: zoo.Weft, Prefixes: few}), mixedSteps)
	}
	m.w.OK()
	want := fmt.Sprintf("INSIDE OK steps=%d\n", mixedSteps)
	if victim == "inside" {
		want = fmt.Sprintf("INSIDE OK steps=%d\n", mixedSteps/2)
	}
	if out := m.w.Ranks[0].Stdout(); !strings.Contains(out, want) {
		t.Errorf("the reader in the writer's process has not said %q:\n%s", want, lastLines(out, 10))
	}
}

// writerDies kills the writer's process without a reader in it: the other one, and all
// readers, hear of it.
func (m *mixed) writerDies() {
	t := m.t
	t.Helper()
	m.w.KillRank(1)
	m.w.Ranks[0].Send(wordNext) // to its next BeginStep
	if e := m.w.End(0, killBound); e.Late || e.Leak != "" || !e.Failed("ErrRankFailed", "ErrRankGone") {
		t.Errorf("writer rank 0: %+v, want ErrRankFailed", e)
	}
	for what, r := range map[string]side{"native": m.native, "denied": m.denied} {
		if e := r.(*WeftPeer).End(0, killBound); e.Late || e.Leak != "" || !e.Failed("ErrWriterFailed") {
			t.Errorf("the reader %s: %+v, want ErrWriterFailed", what, e)
		}
	}
}

// TestNativeMixedRanks: a rank that shares no memory, of the writer or of the reader, is served by
// messages, and the others look. All see the same; a reader that was told to use the native plane
// says which rank it is.
func TestNativeMixedRanks(t *testing.T) {
	const total, ranks, denied = 5, 2, 1
	for _, reader := range []bool{false, true} {
		s, deny := Stream{Ranks: ranks, Vars: few}, Stream{Ranks: ranks, Vars: few, DeniedRanks: []int{denied}}
		ws, rs, at := deny, s, "writer rank 1: its process shares no memory"
		if reader {
			ws, rs, at = s, deny, "DataTransport=native: SessionConfig.NoSharedMemory is set"
		}
		t.Run(fmt.Sprintf("of the reader %v", reader), func(t *testing.T) {
			ws.Dir = t.TempDir()
			rs.Dir = ws.Dir
			w := WeftWriter(t, WriterOptions{Stream: ws, Steps: total})
			r := WeftReader(t, ReaderOptions{Stream: rs, WriterRanks: ranks, WeftWriter: true, Steps: total})
			wantAll(t, r.StepNumbers(), total)
			w.OK()
			wantPlane(t, w, r, "mixed")
			for _, info := range infos[sst.ReaderInfo](r) {
				for rank, from := range info.Writers {
					asked := reader && info.Rank == denied || !reader && rank == denied
					if (from.Copied == 0) != asked || (from.Requests > 0) != asked {
						t.Errorf("reader rank %d of writer rank %d: %+v, by messages must be %v", info.Rank, rank, from, asked)
					}
				}
			}
		})
		t.Run(fmt.Sprintf("of the reader %v, told native", reader), func(t *testing.T) {
			ws.Dir, ws.StepWait, ws.Params = t.TempDir(), true, map[string]string{"RendezvousReaderCount": "0"}
			rs.Dir, rs.Params = ws.Dir, map[string]string{"DataTransport": "native"}
			w := WeftWriter(t, WriterOptions{Stream: ws, Steps: total})
			r := WeftReader(t, ReaderOptions{Stream: rs, WriterRanks: ranks, WeftWriter: true})
			for rank := range r.Ranks {
				if e := r.End(rank, 2*killBound); e.Late || e.Leak != "" || !e.Failed("ErrPlane") || !strings.Contains(e.Text, at) {
					t.Errorf("reader rank %d: %+v, want ErrPlane and %q", rank, e, at)
				}
			}
			w.CloseInput()
			w.OK()
		})
	}
}

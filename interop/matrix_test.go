package interop

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// cell is one pair of sides.
type cell struct{ writer, reader kind }

func (c cell) String() string { return fmt.Sprintf("%v to %v", c.writer, c.reader) }

// matrix is every pair of kinds.
func matrix() (cells []cell) {
	for _, w := range kinds {
		for _, r := range kinds {
			cells = append(cells, cell{w, r})
		}
	}
	return cells
}

// diagonal is a part of the matrix in which every kind writes, and every kind
// reads, at least once; with a Weft cohort of several ranks in each cell.
func diagonal() []cell {
	a1, a2, a4 := adios2Kind(1), adios2Kind(2), adios2Kind(4)
	l1, l3 := localKind(1), localKind(3)
	w1, w3, w5 := weftKind(1), weftKind(3), weftKind(5)
	return []cell{
		{a1, w3}, {a2, w1}, {a2, l3}, {a4, w5},
		{l1, w3}, {l3, a2}, {w1, l3}, {w3, a4}, {w5, a1},
		{w3, w5}, {w5, w3}, {l3, l1}, {w3, w1},
	}
}

// planes are the data planes that a cell is played with: those of ADIOS2 know
// one, and Weft's take the native one unless they are told to do without.
func (c cell) planes() []string {
	if c.writer.weft && c.reader.weft {
		return []string{"native", "evpath"}
	}
	return []string{"evpath"}
}

// TestSoakMatrix is the whole table of types and shapes between every two kinds
// of sides, ten steps, exact. Preload is on and off, and the data plane one or the other: in an
// ordinary run by turns, in soak all in each cell. The table has the field reports F72 (blocks of no
// elements), F73 (empty shares: more reader ranks than rows), F74 (ranks without
// blocks) and F80 (values of some ranks).
func TestSoakMatrix(t *testing.T) {
	const total = 10
	cells := diagonal()
	whole := testutil.Count(t, 0, 1) == 1
	if whole {
		cells = matrix()
	}
	for i, c := range cells {
		planes := c.planes()
		for k, preload := range []string{"On", "Off"} {
			for l, plane := range planes {
				if !whole && (i%2 != k || i/2%len(planes) != l) {
					continue
				}
				t.Run(fmt.Sprintf("%v/preload %s, %s", c, preload, plane), func(t *testing.T) {
					t.Parallel()
					c.play(t, preload, plane, total)
				})
			}
		}
	}
}

func (c cell) play(t *testing.T, preload, plane string, total int) {
	t.Helper()
	dir := t.TempDir()
	params := map[string]string{"SpeculativePreloadMode": preload}
	if len(c.planes()) > 1 && plane == "evpath" {
		params["DataTransport"] = plane
	}
	w := startWriter(t, c.writer, WriterOptions{Stream: Stream{Dir: dir}, Steps: total})
	o := everything(dir, total, params)
	r := startReader(t, c.reader, c.writer, o)
	wantAll(t, stepsOf(t, r, c.writer, o), total)
	w.OK()
	wantPlane(t, w, r, plane)
}

// TestSoakF04TwoCohorts: four writer ranks, reader cohorts of two ranks and of
// one, with a rendezvous of one and of two. With one the second cohort is late
// and holds nobody up; with two both see step 0.
func TestSoakF04TwoCohorts(t *testing.T) {
	const total = 10
	from := weftKind(4)
	for round := range testutil.Count(t, 1, 50) {
		for _, rendezvous := range []int{1, 2} {
			for _, weft := range []bool{true, false} {
				kinds := []kind{weftKind(2), weftKind(1)}
				if !weft {
					kinds = []kind{adios2Kind(2), adios2Kind(1)}
				}
				t.Run(fmt.Sprintf("%d/rendezvous %d, %v", round, rendezvous, kinds), func(t *testing.T) {
					t.Parallel()
					twoCohorts(t, from, kinds, rendezvous, total)
				})
			}
		}
	}
}

func twoCohorts(t *testing.T, from kind, kinds []kind, rendezvous, total int) {
	dir := t.TempDir()
	w := startWriter(t, from, WriterOptions{
		Stream: Stream{Dir: dir, StepWait: true, Params: map[string]string{"RendezvousReaderCount": fmt.Sprint(rendezvous)}}, Steps: total,
	})
	next := func(from, to int) {
		for n := from; n < to; n++ {
			w.Next()
			w.Expect(fmt.Sprintf("STEP %d", n))
		}
	}
	first := everything(dir, total, nil)
	second := ReaderOptions{Stream: Stream{Dir: dir}, Late: rendezvous == 1}
	a := startReader(t, kinds[0], from, first)
	if rendezvous == 1 {
		next(0, 3)
	}
	b := startReader(t, kinds[1], from, second)
	b.Expect("READY")
	next(3*(2-rendezvous), total)
	wantAll(t, stepsOf(t, a, from, first), total)
	latest := 0
	if rendezvous == 1 {
		latest = 3
	}
	wantRun(t, "the second", stepsOf(t, b, from, second), latest, total-1)
	w.OK()
}

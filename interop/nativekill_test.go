package interop

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// Deaths with views held, on either side.

// Numbers of these streams: the reader holds two steps, the writer may have three that wait.
const (
	viewElements = 1 << 17 // 1 MiB
	manyElements = 1 << 21 // 16 MiB, which several goroutines copy
	viewBytes    = 8 * viewElements
	viewsHeld    = 2
	viewQueue    = 3
)

// mostShared is what of shared memory a writer may have mapped: the steps that wait, the one
// that is being filled, one that is free, each in segments that may be an eighth larger; and what the
// connections need.
func (j viewJob) mostShared() uint64 { return (viewQueue+2)*j.Elements*8*9/8 + 8<<20 }

// keptEmpty is what the provider keeps of segments in which nothing is: what a reader that
// was killed looked at leaves some (docs/prov/shm.md, Memory).
const keptEmpty = 128 << 20

// endlessViews is a writer of large steps, and what a reader of it is told.
func endlessViews(dir string, params ...string) viewJob {
	return viewJob{
		Name: filepath.Join(dir, "views"), Write: true, Elements: viewElements, Quiet: true, Delay: time.Millisecond,
		Params: withParam(map[string]string{"QueueLimit": strconv.Itoa(viewQueue)}, params...),
	}
}

// looksAt is a reader of that writer.
func (j viewJob) looksAt(params map[string]string) viewJob {
	return viewJob{Name: j.Name, Elements: j.Elements, Views: viewsHeld, Params: params}
}

// viewDeaths counts what has died, and how.
type viewDeaths struct {
	mu   sync.Mutex
	seen map[string]int
}

func (d *viewDeaths) saw(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[string]int{}
	}
	d.seen[what]++
}

func (d *viewDeaths) log(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(d.seen)) {
		t.Logf("killed, %s: %d times", what, d.seen[what])
	}
}

// TestSoakNativeKill: kill -9 of a writer or of a reader at a random moment, while views are
// held. A reader goes on reading what it holds, and is told, with manual progress too; a writer goes on with the next reader.
func TestSoakNativeKill(t *testing.T) {
	rng := testutil.Rand(t)
	var all viewDeaths
	t.Cleanup(func() { all.log(t) }) // after the last of them
	for i := range testutil.Count(t, 6, 500) {
		writerDies, flowing := i%2 == 0, rng.IntN(4) > 0
		after := time.Duration(rng.Int64N(int64(200 * time.Millisecond)))
		t.Run(fmt.Sprintf("%d/writer dies %v, flowing %v, after %v", i, writerDies, flowing, after), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := endlessViews(dir)
			if i%6 > 3 {
				job.Elements = manyElements
			}
			w := startViews(t, job)
			limit := killOpen
			if flowing {
				limit = killStart
			}
			looks := job.looksAt(map[string]string{"OpenTimeoutSecs": strconv.Itoa(limit)})
			looks.Manual = i%3 == 2
			r := startViews(t, looks)
			r.Expect("OPENING")
			w.Expect("OPENING")
			if flowing {
				r.Expect("STEP ")
			}
			<-time.After(after)
			if writerDies {
				w.Kill()
				all.saw("the writer, of a reader with " + viewsOutlive(t, r, flowing))
				return
			}
			r.Kill()
			viewsGoOn(t, w, job)
			all.saw("the reader")
		})
	}
}

// viewsOutlive checks a reader whose writer is dead. It returns what it held.
func viewsOutlive(t *testing.T, r *WeftPeer, flowing bool) string {
	t.Helper()
	e := r.End(0, killBound+killOpen*time.Second)
	out := r.Stdout()
	switch {
	case e.Late:
		t.Errorf("the reader still runs %v after its writer was killed", e.Duration)
	case e.Code != exitFailed || e.Leak != "":
		t.Errorf("the reader ended with status %d, left %q: %s", e.Code, e.Leak, r.Ranks[0].Stderr())
	case strings.Contains(out, "READY") && !e.Failed("ErrWriterFailed"):
		t.Errorf("the reader ended with %v: %s, want ErrWriterFailed", e.Errors, e.Text)
	case !e.Failed("ErrWriterFailed", "ErrTimeout", "ErrStale", "ErrNoStream"):
		t.Errorf("the reader did not open, with %v: %s", e.Errors, e.Text)
	}
	lines := linesWith(out, "HELD ")
	switch {
	case len(lines) == 1:
		return lines[0]
	case flowing:
		t.Errorf("the reader has not said what it held:\n%s", lastLines(out, 10))
	}
	return "nothing open"
}

// viewsGoOn checks a writer whose reader is dead: it holds no more than it may, the next reader
// gets steps, and the writer can close.
func viewsGoOn(t *testing.T, w *WeftPeer, job viewJob) {
	t.Helper()
	next := startViews(t, job.looksAt(map[string]string{"OpenTimeoutSecs": strconv.Itoa(killStart)}))
	for range viewQueue + 2 {
		next.Expect("STEP ")
	}
	var s RankStats
	eventually(t, "a writer with one reader", func() bool {
		s = w.Stats()[0]
		return s.Readers == 1
	})
	if most := job.mostShared() + keptEmpty; s.Shared > most {
		t.Errorf("after the death of a reader the writer has %+v, at most %d bytes may be shared", s, most)
	}
	w.Send(wordLeave)
	if e := next.End(0, 2*killBound); e.Late || e.Code != 0 {
		t.Errorf("the next reader: %+v", e)
	}
	if e := w.End(0, killBound); e.Late || e.Code != 0 {
		t.Errorf("the writer: %+v\n%s", e, w.Ranks[0].Stderr())
	}
}

// TestSoakNativeCycles: readers attach, look at a step, and are killed with the views that they
// hold, again and again: what the writer holds stays flat.
func TestSoakNativeCycles(t *testing.T) {
	cycles := testutil.Count(t, 6, 100)
	job := endlessViews(t.TempDir(), "RendezvousReaderCount", "0", "QueueFullPolicy", "Discard")
	w := startViews(t, job)
	w.Expect("READY")
	warm := max(cycles/4, viewsHeld+1) // by then as many views as can be were held once
	var first RankStats
	for i := range cycles {
		r := startViews(t, job.looksAt(nil))
		for range 1 + i%(viewsHeld+1) {
			r.Expect("STEP ")
		}
		r.Kill()
		<-r.Done()
		if i == warm { // what is made at first use is made by then
			first = settled(t, w)[0]
		}
	}
	last := settled(t, w)[0]
	t.Logf("after %d cycles %+v, after %d %+v", warm+1, first, cycles, last)
	const heapSlack, sharedSlack = 2 << 20, viewBytes
	if last.Files > first.Files+2 || last.Goroutines > first.Goroutines+4 || last.Heap > first.Heap+first.Heap/2+heapSlack ||
		last.Shared > first.Shared+sharedSlack || last.Shared > job.mostShared() {
		t.Errorf("%+v after %d cycles, %+v after %d", last, cycles, first, warm+1)
	}
	w.Send(wordLeave)
	w.OK()
}

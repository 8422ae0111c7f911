package cohort

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	testutil.Main(m,
		testutil.Role{Name: "launched", Run: roleLaunched},
		testutil.Role{Name: "hang", Run: roleHang},
		testutil.Role{Name: "talk", Run: roleTalk},
	)
}

// patience bounds every wait of a test; no test passes by it.
const patience = 30 * time.Second

// bounded returns a context that ends with the patience of the test.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// said is what a handler was told.
type said struct {
	from int
	msg  []byte
	lost error
}

// recorder is a Handler that hands on what it is told. It finds out if two calls
// overlap, or one comes after a loss.
type recorder struct {
	t      testing.TB
	events chan said

	mu   sync.Mutex
	busy bool
	gone map[int]bool
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, events: make(chan said, 1<<16), gone: make(map[int]bool)}
}

func (r *recorder) enter(from int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy {
		r.t.Error("two calls of one handler at a time")
	}
	r.busy = true
	if r.gone[from] || r.gone[0] {
		r.t.Errorf("a call for rank %d after the last", from)
	}
}

func (r *recorder) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
}

func (r *recorder) Message(from int, msg []byte) {
	r.enter(from)
	defer r.exit()
	r.events <- said{from: from, msg: msg}
}

func (r *recorder) Lost(rank int, err error) {
	r.enter(rank)
	defer r.exit()
	r.mu.Lock()
	r.gone[rank] = true
	r.mu.Unlock()
	if !errors.Is(err, ErrRankGone) {
		r.t.Errorf("rank %d is lost with %v, which is not ErrRankGone", rank, err)
	}
	r.events <- said{from: rank, lost: err}
}

// next waits for a call.
func (r *recorder) next() said {
	r.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(patience):
		r.t.Fatal("nothing came")
		panic("unreachable")
	}
}

// wants waits for a message.
func (r *recorder) wants(from int, msg string) {
	r.t.Helper()
	if e := r.next(); e.from != from || e.lost != nil || string(e.msg) != msg {
		r.t.Errorf("got %.60q of rank %d (lost: %v), want %.60q of rank %d", e.msg, e.from, e.lost, msg, from)
	}
}

// wantsLost waits for the loss of the ranks, in any order.
func (r *recorder) wantsLost(ranks ...int) {
	r.t.Helper()
	var got []int
	for range ranks {
		e := r.next()
		if e.lost == nil {
			r.t.Fatalf("got %.60q of rank %d, want losses %v", e.msg, e.from, ranks)
		}
		got = append(got, e.from)
	}
	slices.Sort(got)
	if !slices.Equal(got, ranks) {
		r.t.Errorf("lost %v, want %v", got, ranks)
	}
}

// quiet fails if a call has come.
func (r *recorder) quiet() {
	r.t.Helper()
	select {
	case e := <-r.events:
		r.t.Errorf("told of rank %d: %.60q, lost: %v", e.from, e.msg, e.lost)
	default:
	}
}

// maker makes the ranks of a cohort that a test closes.
type maker struct {
	name string
	make func(t testing.TB, n int) []Cohort
}

var makers = []maker{{"Local", makeLocal}, {"TCP", makeTCP}}

func makeLocal(t testing.TB, n int) []Cohort {
	ranks := Local(n)
	closeAll(t, ranks)
	return ranks
}

const testToken = "a long and random token, say"

// makeTCP connects n ranks over loopback.
func makeTCP(t testing.TB, n int) []Cohort {
	t.Helper()
	return form(t, n, func(*TCPConfig) {})
}

// form connects n ranks over loopback, each with its configuration changed.
func form(t testing.TB, n int, change func(*TCPConfig)) []Cohort {
	t.Helper()
	ranks, errs := tryForm(bounded(t), t, n, change)
	closeAll(t, ranks)
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	return ranks
}

func tryForm(ctx context.Context, t testing.TB, n int, change func(*TCPConfig)) ([]Cohort, []error) {
	l := listen(t)
	ranks, errs := make([]Cohort, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		c := TCPConfig{Root: l.Addr().String(), Rank: i, Size: n, Token: testToken}
		if i == 0 {
			c.Listener = l
		}
		change(&c)
		wg.Go(func() { ranks[i], errs[i] = TCP(ctx, c) })
	}
	wg.Wait()
	return ranks, errs
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func closeAll(t testing.TB, ranks []Cohort) {
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, c := range ranks {
			if c != nil {
				wg.Go(func() { c.Close() })
			}
		}
		wg.Wait()
	})
}

// end is one rank's end of a channel, with what came in.
type end struct {
	*recorder
	Channel
}

func join(t testing.TB, c Cohort, name string) end {
	t.Helper()
	r := newRecorder(t)
	ch, err := c.Join(name, r)
	if err != nil {
		t.Fatal(err)
	}
	return end{r, ch}
}

func joinAll(t testing.TB, ranks []Cohort, name string) []end {
	t.Helper()
	ends := make([]end, len(ranks))
	for i, c := range ranks {
		ends[i] = join(t, c, name)
	}
	return ends
}

func (e end) send(to int, msg string) {
	e.t.Helper()
	if err := e.Send(to, []byte(msg)); err != nil {
		e.t.Error(err)
	}
}

// pauseBriefly is for what nothing tells of.
func pauseBriefly() <-chan time.Time { return time.After(time.Millisecond) }

// wants fails unless err is the wanted error.
func wants(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want one that is %q", what, err, want)
	}
}

// within runs f and fails if it takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, at most %v is right", what, took, limit)
	}
}

// filler is a message of n bytes that tells its sender and number. Its pieces all
// differ from their neighbours, so that none can be missing or changed over.
func filler(n, rank, number int) []byte {
	b := make([]byte, n)
	const piece = 1 << 12
	for i := 0; i < min(n, piece); i++ {
		b[i] = byte(i + i>>8 + 7*rank + 13*number)
	}
	for at := piece; at < n; at += piece {
		copy(b[at:], b[:piece])
		b[at] = byte(at >> 12)
	}
	return b
}

package carrier

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// judge is a Handler that checks the promises of every link: messages in order,
// none after Lost, Lost once.
type judge struct {
	t  testing.TB
	mu sync.Mutex
	at map[Link]int  // the last number that came
	is map[Link]bool // lost
}

func newJudge(t testing.TB) *judge {
	return &judge{t: t, at: map[Link]int{}, is: map[Link]bool{}}
}

func (j *judge) Message(l Link, in Inbound) {
	n := number(in.Data)
	in.Free()
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, ok := j.at[l]; ok && n <= last {
		j.t.Errorf("number %d after %d", n, last)
	}
	if j.is[l] {
		j.t.Errorf("number %d after the end", n)
	}
	j.at[l] = n
}

func (j *judge) Lost(l Link, _ error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.is[l] {
		j.t.Error("lost twice")
	}
	j.is[l] = true
}

// TestRandomHistories lets several endpoints dial, send, close and abort at
// random; whatever happens, each record is done once and each link lost once.
func TestRandomHistories(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const endpoints, actors, steps = 4, 3, 150
	var all []*CM
	var contacts []cm.Contact
	var judges []*judge
	for range endpoints {
		j := newJudge(t)
		c, _ := open(t, Config{Handler: j, MaxQueued: 8, CloseTimeout: 2 * time.Second})
		all, contacts, judges = append(all, c), append(contacts, c.Contact()), append(judges, j)
	}
	f := testFormat(t, "F")
	var serial, sent, done atomic.Int64
	var sending [endpoints]sync.Mutex // numbers rise on each link
	var wg sync.WaitGroup
	for i := range endpoints * actors {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			me := i % endpoints
			for range steps {
				l, err := all[me].Dial(t.Context(), contacts[rnd.IntN(endpoints)])
				if err != nil {
					continue // the other end may be closing a link that we found
				}
				switch k := rnd.IntN(20); k {
				case 0:
					_ = l.Close()
				case 1:
					l.Abort(nil)
				default:
					sending[me].Lock()
					r := record(f, int(serial.Add(1)), rnd.IntN(100_000))
					var calls atomic.Int32
					r.Done = func(error) {
						if calls.Add(1) != 1 {
							t.Error("a record was done twice")
						}
						done.Add(1)
					}
					sent.Add(1)
					_ = l.Send(r)
					sending[me].Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, c := range all {
		wg.Go(func() { _ = c.Close() })
	}
	wg.Wait()
	if sent.Load() != done.Load() {
		t.Errorf("%d records sent, %d done", sent.Load(), done.Load())
	}
	for i, j := range judges {
		if b := booksOf(all[i]); b != (books{}) {
			t.Errorf("endpoint %d: left behind: %+v", i, b)
		}
		for l := range j.at {
			if !j.is[l] {
				t.Errorf("endpoint %d: a link was never lost", i)
			}
		}
	}
}

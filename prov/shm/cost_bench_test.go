package shm

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// BenchmarkCost is what each call of a short message costs by itself, in the best hundredth of many batches, so that a
// busy machine shows less. One goroutine plays both sides.
func BenchmarkCost(b *testing.B) {
	x, y, to, _ := twoSides(b, provider.DomainConfig{Progress: provider.Manual})
	const batch = 64
	in := make([]byte, 8)
	recv := provider.Op{Local: provider.Segment{Bytes: in}}
	send := provider.Op{Local: provider.Segment{Bytes: in}, Peer: to, Flags: provider.Quiet | provider.Inject}
	var done [1]provider.Completion
	var calls = [...]struct {
		name string
		call func()
	}{
		{"recv", func() {
			if err := y.ep.Recv(recv); err != nil {
				b.Fatal(err)
			}
		}},
		{"send", func() {
			if err := x.ep.Send(send); err != nil {
				b.Fatal(err)
			}
		}},
		{"found", func() {
			if n, err := y.cq.Read(done[:]); n != 1 || err != nil {
				b.Fatal(n, err)
			}
		}},
		{"empty", func() {
			if n, err := y.cq.Read(done[:]); n != 0 || err != nil {
				b.Fatal(n, err)
			}
		}},
	}
	calls[0].call() // connects
	calls[1].call()
	for n := 0; n == 0; {
		n, _ = y.cq.Read(done[:])
		_, _ = x.cq.Read(done[:])
	}
	var ns [len(calls)][]float64
	b.ReportAllocs()
	for b.Loop() {
		for i := range calls {
			start := time.Now()
			for range batch {
				calls[i].call()
			}
			ns[i] = append(ns[i], float64(time.Since(start).Nanoseconds())/batch)
		}
	}
	for i := range calls {
		sort.Float64s(ns[i])
		b.ReportMetric(ns[i][len(ns[i])/100], calls[i].name+"-ns")
	}
}

func init() { roles = append(roles, testutil.Role{Name: "torrent", Run: torrent}) }

// torrent sends so many messages of 8 bytes as fast as there is room, when it is told to.
func torrent(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	d, err := open(provider.Info{}, provider.DomainConfig{Progress: provider.Manual})
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq})
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[0]))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	send := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: to, Flags: provider.Quiet | provider.Inject}
	var c [16]provider.Completion
	for i := 0; i < n; {
		if ep.Send(send) == nil {
			i++
			continue
		}
		if _, err := cq.Read(c[:]); err != nil {
			return err
		}
	}
	for { // until all is out, and we are told
		if _, err := cq.Read(c[:]); err != nil {
			return err
		}
		if os.Getppid() == 1 {
			return nil
		}
		d.core.Lock()
		idle := d.stats.Sent == uint64(n) && d.stats.Peers == 0
		d.core.Unlock()
		if idle {
			return d.Close()
		}
	}
}

// BenchmarkRate is how long a message of 8 bytes takes when another process sends one after the other: of the best and the
// middle hundredth of batches of 256.
func BenchmarkRate(b *testing.B) {
	y := newSide(b, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	const batch, posted = 256, 64
	rounds := max(1, b.N/batch)
	in := make([]byte, 8)
	recv := provider.Op{Local: provider.Segment{Bytes: in}}
	for range posted {
		y.must(y.ep.Recv(recv))
	}
	child := testutil.Child(b, "torrent", string(y.ep.Address()), strconv.Itoa(rounds*batch))
	child.Expect("ready")
	var c [32]provider.Completion
	left := rounds * batch
	ns := make([]float64, 0, rounds)
	start, got := time.Now(), 0
	for left > 0 {
		n, err := y.cq.Read(c[:])
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			if y.ep.Recv(recv) != nil {
				b.Fatal("refused")
			}
		}
		if left, got = left-n, got+n; got >= batch {
			now := time.Now()
			ns = append(ns, float64(now.Sub(start).Nanoseconds())/float64(got))
			start, got = now, 0
		}
	}
	sort.Float64s(ns)
	b.ReportMetric(ns[len(ns)/2], "median-ns")
	b.ReportMetric(ns[len(ns)/100], "best-ns")
	y.must(y.d.Close())
	if err := child.Wait(); err != nil {
		b.Fatal(err)
	}
}

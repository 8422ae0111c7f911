package shm

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

func init() { roles = append(roles, testutil.Role{Name: "pong", Run: pong}) }

// pong answers each message with one of the same length, until its stdin ends; polling, so that it is the way of the
// message that is measured. First it answers the bare word, in the same memory, for comparison.
func pong(args []string) error {
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
	mine, err := d.Alloc(64, peerBoth)
	if err != nil {
		return err
	}
	word := word(mine.Bytes(), 0)
	fmt.Println("addr", ep.Address(), uint64(mine.Key()))
	var stop atomic.Bool
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop.Store(true)
	}()
	for d.Stats().Peers == 0 && !stop.Load() {
		if _, err := cq.Read(nil); err != nil {
			return err
		}
		runtime.Gosched()
	}
	for !stop.Load() { // odd numbers are the other side's; 1<<40 ends it
		v := word.Load()
		if v >= 1<<40 {
			break
		}
		if v&1 == 1 {
			word.Store(v + 1)
		}
	}
	in, out := make([]byte, n), make([]byte, n)
	recv := provider.Op{Local: provider.Segment{Bytes: in}, Tag: 1, Context: 1}
	send := provider.Op{Local: provider.Segment{Bytes: out}, Peer: to, Tag: 1, Flags: provider.Quiet}
	if err := ep.RecvTagged(recv); err != nil {
		return err
	}
	var c [4]provider.Completion
	for i := 0; !stop.Load(); i++ {
		k, err := cq.Read(c[:])
		for range k {
			if err := ep.SendTagged(send); err != nil {
				return err
			}
			if err := ep.RecvTagged(recv); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if k == 0 && i%64 == 0 {
			runtime.Gosched()
		}
	}
	return d.Close()
}

// BenchmarkPingPong is half a round trip between two processes that poll: of the best and the middle hundredth of
// the rounds, so that what else the machine does shows less, beside the same with a bare word of shared memory.
func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{8, 1024, 4096, 65536} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			a := newSide(b, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
			child := testutil.Child(b, "pong", string(a.ep.Address()), strconv.Itoa(n))
			var addr string
			var key uint64
			if _, err := fmt.Sscan(child.Expect("addr "), &addr, &key); err != nil {
				b.Fatal(err)
			}
			to := a.insert(provider.Address(addr))
			p, _, _, w := a.word(b, to, provider.Key(key))
			const batch = 100
			rounds := max(1, b.N/batch)
			bare := make([]float64, 0, rounds)
			v := uint64(1)
			for range rounds {
				start := time.Now()
				for range batch {
					w.Store(v)
					for w.Load() != v+1 {
					}
					v += 2
				}
				bare = append(bare, float64(time.Since(start).Nanoseconds())/batch/2)
			}
			w.Store(1 << 40)
			_ = p
			in, out := make([]byte, n), make([]byte, n)
			recv := provider.Op{Local: provider.Segment{Bytes: in}, Tag: 1, Context: 1}
			send := provider.Op{Local: provider.Segment{Bytes: out}, Peer: to, Tag: 1, Flags: provider.Quiet}
			var c [4]provider.Completion
			ours := make([]float64, 0, rounds)
			a.must(a.ep.RecvTagged(recv))
			b.ResetTimer()
			for range rounds {
				start := time.Now()
				for range batch {
					if a.ep.SendTagged(send) != nil {
						b.Fatal("refused")
					}
					for k := 0; k == 0; {
						k, _ = a.cq.Read(c[:])
					}
					if a.ep.RecvTagged(recv) != nil {
						b.Fatal("refused")
					}
				}
				ours = append(ours, float64(time.Since(start).Nanoseconds())/batch/2)
			}
			b.StopTimer()
			sort.Float64s(bare)
			sort.Float64s(ours)
			b.ReportMetric(bare[len(bare)/2], "bare-ns")
			b.ReportMetric(bare[len(bare)/100], "bare-best-ns")
			b.ReportMetric(ours[len(ours)/2], "median-ns")
			b.ReportMetric(ours[len(ours)/100], "best-ns")
			child.CloseInput()
			if err := child.Wait(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// word maps a word of the peer's arena for writing.
func (s *side) word(t testing.TB, to provider.Peer, key provider.Key) (*pair, spot, int, *atomic.Uint64) {
	t.Helper()
	v, err := s.d.View(t.Context(), to, key, 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	s.d.core.Lock()
	defer s.d.core.Unlock()
	p := s.d.pairs[0]
	sp, found, err := p.hold(provider.RemoteSegment{Key: key, Len: 8}, provider.WriteDone)
	if found != foundSpot {
		t.Fatal(found, err)
	}
	t.Cleanup(func() {
		s.d.core.Lock()
		defer s.d.core.Unlock()
		p.drop(sp)
	})
	return p, sp, found, word(sp.bytes, 0)
}

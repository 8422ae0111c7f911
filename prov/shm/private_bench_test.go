package shm

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func init() { roles = append(roles, testutil.Role{Name: "hoard", Run: hoard}) }

const hoardLen = 64 << 20

// hoard registers private memory and serves it: asleep between requests, or polling.
func hoard(args []string) error {
	d, err := open(provider.Info{}, provider.DomainConfig{})
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
	b := make([]byte, hoardLen)
	for i := range b {
		b[i] = byte(i >> 8)
	}
	m, err := d.Register(memmon.HeapBytes(b), peerBoth)
	if err != nil {
		return err
	}
	fmt.Println("addr", ep.Address(), uint64(m.Key()), sys.Address(b))
	var stop atomic.Bool
	if args[0] == "polling" {
		go func() {
			for !stop.Load() {
				_, _ = cq.Read(nil)
				runtime.Gosched()
			}
		}()
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	stop.Store(true)
	runtime.KeepAlive(b)
	return d.Close()
}

// BenchmarkPrivate reads registered memory of another process, each time another part of it, by way of its owner, which sleeps
// or polls, and by process_vm_readv: half of all reads, and nine tenths, took longer than what is said.
func BenchmarkPrivate(b *testing.B) {
	for _, how := range []string{"asleep", "polling"} {
		child := testutil.Child(b, "hoard", how)
		var addr string
		var key, at uint64
		if _, err := fmt.Sscan(child.Expect("addr "), &addr, &key, &at); err != nil {
			b.Fatal(err)
		}
		local := make([]byte, hoardLen)
		for _, n := range []int{8, 4 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 64 << 20} {
			for _, cma := range []string{"off", "on"} {
				b.Run(fmt.Sprintf("%s/%d/cma=%s", how, n, cma), func(b *testing.B) {
					a := newSide(b, provider.DomainConfig{Options: map[string]string{"cma": cma}}, provider.EndpointConfig{})
					to := a.insert(provider.Address(addr))
					off := 0
					var us []float64
					for i := range max(b.N, 10) {
						op := provider.Op{Local: provider.Segment{Bytes: local[off:][:n]}, Peer: to, Key: provider.Key(key), Offset: uint64(off)}
						if off += n; off+n > hoardLen {
							off = 0
						}
						if how == "asleep" { // let it fall asleep
							for start := time.Now(); time.Since(start) < 200*time.Microsecond; {
								runtime.Gosched()
							}
						}
						start := time.Now()
						a.must(a.ep.Read(op))
						a.good(a.wait(), provider.ReadDone, 0)
						if i > 0 { // else it connects
							us = append(us, float64(time.Since(start).Nanoseconds())/1000)
						}
					}
					slices.Sort(us)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(us[len(us)/10], "p10-us")
					b.ReportMetric(us[len(us)/2], "median-us")
				})
			}
		}
		child.CloseInput()
		if err := child.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

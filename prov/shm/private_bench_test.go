package shm

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
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

// BenchmarkPrivate reads and writes registered memory of another process, beside what process_vm_readv alone does.
func BenchmarkPrivate(b *testing.B) {
	for _, how := range []string{"asleep", "polling"} {
		a := newSide(b, provider.DomainConfig{}, provider.EndpointConfig{})
		child := testutil.Child(b, "hoard", how)
		var addr string
		var key, at uint64
		if _, err := fmt.Sscan(child.Expect("addr "), &addr, &key, &at); err != nil {
			b.Fatal(err)
		}
		to := a.insert(provider.Address(addr))
		local := make([]byte, hoardLen)
		for _, kind := range []string{"read", "write", "cma"} {
			for _, n := range []int{8, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20} {
				for _, window := range []int{1, 16} {
					if kind == "cma" && window > 1 {
						continue
					}
					b.Run(fmt.Sprintf("%s/%s/%d/%d", how, kind, n, window), func(b *testing.B) {
						b.SetBytes(int64(n))
						off, out := 0, 0
						var c [16]provider.Completion
						for b.Loop() {
							op := provider.Op{Local: provider.Segment{Bytes: local[off:][:n]}, Peer: to, Key: provider.Key(key), Offset: uint64(off)}
							if off += n; off+n > hoardLen {
								off = 0
							}
							if window == 1 && how == "asleep" && n < 1<<20 { // let it fall asleep
								b.StopTimer()
								for start := time.Now(); time.Since(start) < 300*time.Microsecond; {
									runtime.Gosched()
								}
								b.StartTimer()
							}
							switch kind {
							case "read":
								a.must(a.ep.Read(op))
							case "write":
								a.must(a.ep.Write(op))
							case "cma":
								if _, err := sys.ReadProcess(child.Pid(), at+op.Offset, op.Local.Bytes, sys.Features{}); err != nil {
									b.Fatal(err)
								}
								continue
							}
							for out++; out >= window; {
								k, err := a.cq.Wait(b.Context(), c[:])
								if err != nil {
									b.Fatal(err)
								}
								for _, c := range c[:k] {
									a.must(c.Err)
								}
								out -= k
							}
						}
						for out > 0 {
							k, err := a.cq.Wait(b.Context(), c[:])
							a.must(err)
							out -= k
						}
						_ = strconv.Itoa
					})
				}
			}
		}
		child.CloseInput()
		if err := child.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

package shmem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

var stressConfig = RingConfig{MinBody: 8, MaxBody: 1000}

// produce sends n records, of lengths and in batches that the seed says: a count, then bytes that follow from it.
func produce(p *Producer, n int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		size := 8 + rng.IntN(1+rng.IntN(stressConfig.MaxBody-7))
		rec, err := p.Reserve(size)
		for errors.Is(err, ErrFull) {
			p.Publish()
			runtime.Gosched()
			sys.Yield()
			rec, err = p.Reserve(size)
		}
		if err != nil {
			return err
		}
		rec.Store(0, uint64(i))
		body := rec.Payload(1)
		for j := range body {
			body[j] = byte(i + j)
		}
		p.Commit()
		if rng.IntN(4) == 0 || i == n-1 {
			p.Publish()
		}
	}
	return nil
}

// consume checks what produce sends.
func consume(c *Consumer, n int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		rec, err := c.Peek()
		for rec == nil && err == nil {
			c.Flush()
			runtime.Gosched()
			sys.Yield()
			rec, err = c.Peek()
		}
		if err != nil {
			return err
		}
		size := 8 + rng.IntN(1+rng.IntN(stressConfig.MaxBody-7))
		if len(rec) != size || rec.Load(0) != uint64(i) {
			return fmt.Errorf("record %d: %d bytes, number %d", i, len(rec), rec.Load(0))
		}
		for j, b := range rec.Payload(1) {
			if b != byte(i+j) {
				return fmt.Errorf("record %d: byte %d is %d", i, j, b)
			}
		}
		rng.IntN(4)
		c.Advance()
	}
	c.Flush()
	return nil
}

// TestSoakRing runs both sides at once, over plain memory, where the race detector watches, and over two
// mappings, where it must not report what is none.
func TestSoakRing(t *testing.T) {
	n := testutil.Count(t, 20000, 5000000)
	seed := testutil.Rand(t).Uint64()
	for name, mem := range map[string]func() (rw, ro Region){
		"heap":     func() (Region, Region) { r := private(t, 8192); return r, r },
		"mappings": func() (Region, Region) { return shared(t, 8192) },
	} {
		t.Run(name, func(t *testing.T) {
			ringRW, ringRO := mem()
			creditRW, creditRO := mem()
			p, err := NewProducer(ringRW, mustWord(t, creditRO), stressConfig)
			if err != nil {
				t.Fatal(err)
			}
			c, err := NewConsumer(ringRO, mustWord(t, creditRW), stressConfig)
			if err != nil {
				t.Fatal(err)
			}
			handed := 0 // what is handed over through the ring, for the race detector
			var wg sync.WaitGroup
			wg.Go(func() {
				handed = 7
				if err := produce(p, n, seed); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := consume(c, n, seed); err != nil {
					t.Error(err)
				} else if handed != 7 {
					t.Error(handed)
				}
			})
			wg.Wait()
		})
	}
}

func mustWord(t testing.TB, r Region) *atomic.Uint64 {
	t.Helper()
	w, err := r.Word64(128)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSoakRingProcesses runs the two sides in two processes.
func TestSoakRingProcesses(t *testing.T) {
	n := testutil.Count(t, 20000, 5000000)
	seed := testutil.Rand(t).Uint64()
	p, child, done := consumerProcess(t, n, seed)
	if err := produce(p, n, seed); err != nil {
		t.Error(err)
	}
	done()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// TestConsumerDies kills the consumer of a full ring: the producer sees a full ring, nothing else.
func TestConsumerDies(t *testing.T) {
	p, child, done := consumerProcess(t, 1<<30, 5)
	defer done()
	if err := produce(p, 1000, 5); err != nil {
		t.Error(err)
	}
	child.Kill()
	<-child.Done()
	for {
		_, err := p.Reserve(1000)
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Commit()
		p.Publish()
	}
	if n, err := p.Outstanding(); n == 0 || err != nil {
		t.Error(n, err)
	}
}

// consumerProcess starts a process that consumes, each side's memory sealed against the other.
func consumerProcess(t *testing.T, n int, seed uint64) (p *Producer, child *testutil.Process, done func()) {
	t.Helper()
	addr := sys.UnixAddress{Name: fmt.Sprintf("weft-test-ring-%d", os.Getpid()), Abstract: true}
	l, err := sys.ListenUnix(addr, sys.SeqPacket, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child = testutil.Child(t, "consume", addr.Name, strconv.Itoa(n), strconv.FormatUint(seed, 10))
	poller, err := sys.NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer poller.Close()
	if err := poller.Add(l.FD, sys.Readable, 0); err != nil {
		t.Fatal(err)
	}
	if err := poller.Park(t.Context(), child.Done()); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fd, mine, err := ownMemory(8192)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	if _, err := conn.Send([]byte("ring"), fd); err != nil {
		t.Fatal(err)
	}
	theirs, err := peerMemory(conn, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = NewProducer(RegionOf(mine), mustWord(t, RegionOf(theirs)), stressConfig); err != nil {
		t.Fatal(err)
	}
	return p, child, func() { mine.Close(); theirs.Close() }
}

const peerSeals = sys.SealShrink | sys.SealGrow | sys.SealFutureWrite | sys.SealSeal

// ownMemory is memory that only this process writes.
func ownMemory(size int) (*sys.FD, *sys.Mapping, error) {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "ring", Size: int64(size)})
	if err != nil {
		return nil, nil, err
	}
	m, err := sys.Map(fd, 0, size, true)
	if err == nil {
		err = sys.Seal(fd, peerSeals)
	}
	return fd, m, err
}

// peerMemory receives the memory of the peer.
func peerMemory(conn sys.Socket, size int) (*sys.Mapping, error) {
	poller, err := sys.NewPoller()
	if err != nil {
		return nil, err
	}
	defer poller.Close()
	if err := poller.Add(conn.FD, sys.Readable, 0); err != nil {
		return nil, err
	}
	if err := poller.Park(context.Background(), nil); err != nil {
		return nil, err
	}
	_, fds, err := conn.Recv(make([]byte, 10), 1)
	if err != nil {
		return nil, err
	}
	defer sys.CloseAll(fds)
	if err := sys.CheckSealed(fds[0], int64(size), peerSeals); err != nil {
		return nil, err
	}
	return sys.Map(fds[0], 0, size, false)
}

// roleConsume is the consumer: address, count, seed.
func roleConsume(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	conn, err := sys.ConnectUnix(sys.UnixAddress{Name: args[0], Abstract: true}, sys.SeqPacket)
	if err != nil {
		return err
	}
	defer conn.Close()
	fd, mine, err := ownMemory(4096)
	if err != nil {
		return err
	}
	if _, err := conn.Send([]byte("credit"), fd); err != nil {
		return err
	}
	theirs, err := peerMemory(conn, 8192)
	if err != nil {
		return err
	}
	credit, err := RegionOf(mine).Word64(128)
	if err != nil {
		return err
	}
	c, err := NewConsumer(RegionOf(theirs), credit, stressConfig)
	if err != nil {
		return err
	}
	return consume(c, n, seed)
}

func TestRingAllocatesNothing(t *testing.T) {
	r := newRing(t, 1024, RingConfig{MaxBody: 100})
	if n := testing.AllocsPerRun(1000, func() { cycle(r, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for err := error(nil); err == nil; r.Commit() {
		_, err = r.Reserve(100)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.Reserve(100) }); n != 0 {
		t.Errorf("%v allocations when full", n)
	}
}

// cycle sends and receives a batch of n messages of 8 bytes.
func cycle(r ring, n int) {
	for range n {
		rec, err := r.Reserve(16)
		if err != nil {
			panic(err)
		}
		rec.Store(0, 1)
		binary.NativeEndian.PutUint64(rec.Payload(1), 2)
		r.Commit()
	}
	r.Publish()
	for range n {
		rec, err := r.Peek()
		if err != nil || rec.Load(0) != 1 {
			panic(err)
		}
		r.Advance()
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			r := newRing(b, 65536, RingConfig{MaxBody: 4096})
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				cycle(r, n)
			}
		})
	}
}

// BenchmarkRingRate is messages of 8 bytes from one goroutine to another, over two mappings.
func BenchmarkRingRate(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			p, c := benchPair(b)
			b.ReportAllocs()
			go func() {
				for i := range b.N {
					rec, err := p.Reserve(16)
					for errors.Is(err, ErrFull) {
						p.Publish()
						runtime.Gosched()
						rec, err = p.Reserve(16)
					}
					rec.Store(0, uint64(i))
					p.Commit()
					if i%batch == batch-1 || i == b.N-1 {
						p.Publish()
					}
				}
			}()
			for i := range b.N {
				if rec := await(c); rec.Load(0) != uint64(i) {
					b.Fatal(i)
				}
				c.Advance()
			}
		})
	}
}

// BenchmarkRingPingPong is half of a round trip between two goroutines.
func BenchmarkRingPingPong(b *testing.B) {
	for _, size := range []int{8, 1024, 4096 - 64} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			p1, c1 := benchPair(b)
			p2, c2 := benchPair(b)
			from, to := make([]byte, size), make([]byte, size)
			turn := func(p *Producer, c *Consumer, first bool, from, to []byte) {
				for range b.N / 2 {
					if !first {
						copy(to, await(c).Payload(1))
						c.Advance()
						c.Flush()
					}
					rec, err := p.Reserve(8 + size)
					if err != nil {
						panic(err)
					}
					copy(rec.Payload(1), from)
					p.Commit()
					p.Publish()
					if first {
						copy(to, await(c).Payload(1))
						c.Advance()
						c.Flush()
					}
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() { turn(p2, c1, false, make([]byte, size), make([]byte, size)) })
			turn(p1, c2, true, from, to)
			wg.Wait()
		})
	}
}

func benchPair(b *testing.B) (*Producer, *Consumer) {
	config := RingConfig{MaxBody: 4096}
	rw, ro := shared(b, 65536)
	creditRW, creditRO := shared(b, 4096)
	p, err := NewProducer(rw, mustWord(b, creditRO), config)
	if err != nil {
		b.Fatal(err)
	}
	c, err := NewConsumer(ro, mustWord(b, creditRW), config)
	if err != nil {
		b.Fatal(err)
	}
	return p, c
}

// await polls, as a provider does.
func await(c *Consumer) Record {
	for spins := 0; ; spins++ {
		rec, err := c.Peek()
		if err != nil {
			panic(err)
		}
		if rec != nil {
			return rec
		}
		c.Flush()
		if spins%64 == 63 {
			runtime.Gosched()
		}
	}
}

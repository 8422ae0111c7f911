package interop

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// TestSoakF69ShortClients has eight clients at a time, each a process that sends one request and leaves, to two servers: every request and every
// answer is as it was sent.
func TestSoakF69ShortClients(t *testing.T) {
	folder, err := os.MkdirTemp("", "weft") //nolint:usetesting // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	var servers []*testutil.Process
	var addresses []string
	for _, name := range []string{"one", "two"} {
		p := testutil.Child(t, serverRole, folder, name)
		servers = append(servers, p)
		addresses = append(addresses, strings.TrimPrefix(p.Expect("READY "), "READY "))
	}
	more := testutil.Last(t, 40, time.Minute)
	var clients atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !t.Failed() && more() {
				n := int(clients.Add(1))
				p := testutil.Child(t, clientRole, folder, addresses[n%len(addresses)], strconv.Itoa(requestSizes[n%len(requestSizes)]), strconv.Itoa(n%200))
				if err := p.Wait(); err != nil {
					t.Errorf("client %d: %v: %s", n, err, p.Output())
				}
			}
		})
	}
	all.Wait()
	for _, p := range servers {
		p.CloseInput()
		if err := p.Wait(); err != nil {
			t.Errorf("server: %v: %s", err, p.Output())
		}
	}
	t.Logf("registration: %d clients", clients.Load())
}

// TestF69CacheOn sends memory of these sizes that is allocated for each message and freed, through a fabric that keeps registrations.
func TestF69CacheOn(t *testing.T) {
	w := newWire(t, arbiter(t))
	for n := range testutil.Count(t, 200, 5000) {
		b := make([]byte, requestSizes[n%len(requestSizes)])
		paint(b, byte(n))
		if c := w.carries(memmon.HeapBytes(b)); c != byte(n) {
			t.Fatalf("message %d carries the bytes of %d", n, c)
		}
	}
}

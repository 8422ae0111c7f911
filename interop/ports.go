package interop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// Ports that tests give out lie below those that the kernel gives to whoever asks
// for none, and go round: what has just been used is not used again for long.
// They begin anywhere, since other test processes run on the same machine.
const (
	peerPorts, peerRange = 10000, 50 // of ADIOS2: that many for each
	meetingPorts         = 20000     // of cohorts of Weft
	endOfPorts           = 30000
)

var peersStarted, meetingsMade = anywhere(), anywhere()

func anywhere() *atomic.Int64 {
	var n atomic.Int64
	n.Store(rand.Int64N(1 << 20))
	return &n
}

// ownPorts is the environment in which a peer listens on ports that no other one
// has had lately. ADIOS2 crashes if it is taken for another process: by a reader
// with the contact of a writer that is dead, whose port it has got (docs/wire/sst.md
// §2). That must not happen to the peer of another test.
func ownPorts() []string {
	from := peerPorts + peersStarted.Add(1)%((meetingPorts-peerPorts)/peerRange)*peerRange
	ports := fmt.Sprintf("_PORT_RANGE=%d:%d", from, from+peerRange-1)
	return []string{"ADIOS2_SERIAL" + ports, "ADIOS2_MPI" + ports}
}

// freePort returns an address at which nobody listens.
func freePort(t testing.TB) string {
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", meetingPorts+meetingsMade.Add(1)%(endOfPorts-meetingPorts))
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			continue
		}
		l.Close()
		return addr
	}
	t.Fatal("no free port")
	return ""
}

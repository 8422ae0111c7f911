package shm

import (
	"os"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// The socket of a peer that has died, and that still answers when its death is told, is removed at the end of the survivor.
func TestLateLitter(t *testing.T) {
	dir := t.TempDir()
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": dir}}, provider.EndpointConfig{})
	gone, alive := folderName(dir, "gone"), folderName(dir, "alive")
	var socks []sys.Socket
	for _, at := range []sys.UnixAddress{gone, alive} {
		s, err := sys.ListenUnix(at, sys.SeqPacket, 10)
		if err != nil {
			t.Fatal(err)
		}
		socks = append(socks, s)
		a.d.core.Lock()
		a.d.clean(at)
		a.d.core.Unlock()
		if _, err := os.Stat(at.Name); err != nil {
			t.Fatalf("a socket that answers was removed: %v", err)
		}
	}
	a.must(socks[0].Close()) // the kernel has come to it
	a.must(a.d.Close())
	if _, err := os.Stat(gone.Name); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if _, err := os.Stat(alive.Name); err != nil {
		t.Errorf("somebody else's was removed: %v", err)
	}
	a.must(socks[1].Close())
}

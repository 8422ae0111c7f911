package dp

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	_ "github.com/weft-fabric/weft/prov/shm"
	"github.com/weft-fabric/weft/step"
)

// shmRoute is a route as a session has it.
type shmRoute struct {
	domain *fabric.Domain
	peer   fabric.Peer
}

func (r shmRoute) View(ctx context.Context, key fabric.Key, at uint64, n int) ([]byte, func(), error) {
	v, err := r.domain.View(ctx, r.peer, key, at, n)
	if err != nil {
		return nil, nil, err
	}
	return v.Bytes(), v.Release, nil
}

// openShm returns a domain with an endpoint.
func openShm(t *testing.T) (*fabric.Domain, fabric.Address) {
	t.Helper()
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "shm", Caps: fabric.Views})
	if err != nil {
		t.Fatal(err)
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cq, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.OpenEndpoint(fabric.EndpointConfig{Send: cq, Recv: cq})
	if err != nil {
		t.Fatal(err)
	}
	return d, ep.Address()
}

// TestNativeOverShm meets the real errors: too many views, memory that was closed, a
// writer that has gone, and an end of this side.
func TestNativeOverShm(t *testing.T) {
	const blocks, each = 4200, 64 // 4096 of them can be in use
	writer, address := openShm(t)
	reader, _ := openShm(t)
	peer, err := reader.Insert(address)
	if err != nil {
		t.Fatal(err)
	}
	block := blockOf(5, 0, blocks*each)
	var memories []*fabric.Memory
	var list []Extent
	for i := range uint64(blocks) {
		m, err := writer.Alloc(each, fabric.PeerRead)
		if err != nil {
			t.Fatal(err)
		}
		copy(m.Bytes(), block[i*each:])
		memories, list = append(memories, m), append(list, Extent{i * each, each, m.Key(), 0})
	}
	f := newFakes(t, 5, []Extent{})
	f.Use([]Route{shmRoute{reader, peer}})
	s := f.Step(5, ModeRequest, []sstmsg.Block{{Data: sstmsg.ByteBlob(AppendExtents(nil, list))}})
	view := func(i uint64) ([]byte, func(), error) { return s.(step.Viewer).View(t.Context(), 0, i*each, each) }

	all := []step.Piece{piece(0, 0, blocks*each)}
	if err := s.Read(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	check(t, 5, all)
	if n := f.asked()[0]; n != (blocks-4096)*each {
		t.Errorf("%d bytes were asked for", n)
	}

	kept, release, err := view(1)
	if err != nil || !bytes.Equal(kept, block[each:2*each]) {
		t.Fatalf("% x, %v", kept, err)
	}
	memories[0].Close()
	memories[1].Close()
	if _, _, err := view(0); !errors.Is(err, fabric.ErrKey) || !errors.Is(err, errLost) {
		t.Errorf("closed memory: %v", err)
	}
	writer.Close()
	if _, _, err := view(2); !errors.Is(err, fabric.ErrPeerGone) || !errors.Is(err, errLost) {
		t.Errorf("a writer that has gone: %v", err)
	}
	reader.Close()
	if _, _, err := view(2); !errors.Is(err, fabric.ErrClosed) || errors.Is(err, errLost) {
		t.Errorf("a domain that was closed: %v", err)
	}
	if !bytes.Equal(kept, block[each:2*each]) {
		t.Error("the view has changed")
	}
	done := make(chan struct{})
	f.AfterViews(5, func() { close(done) })
	release()
	next(t, "end of views", done)
}

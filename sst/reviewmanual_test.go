package sst_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestReviewManualFarHeap: a block of writer rank 1 that lies in the heap is read over a connection, or refused: no wait
// goes on for ever when the answer is there.
func TestReviewManualFarHeap(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{})
	defer c.close()
	keeper := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{DataTransport: "evpath", SpeculativePreloadMode: "Off"}}) // keeps the step
	attachedBy(t, c.writers[0], "evpath")
	c.step() // nobody looks at memory yet: it lies in the heap
	r := attach(t, c.name, sst.ReaderConfig{Session: manualSession(t)})
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := async(func() error {
		_, err := step.Read[int64](ctx, st, "n")
		return err
	})
	select {
	case err = <-read:
	case <-time.After(5 * time.Second):
		t.Errorf("the read hangs, although the answer is here: %+v", r.Info().Writers[1])
		cancel()
		err = <-read
	}
	cancel()
	t.Logf("the read: %v", err) // docs/native.md says that it cannot be read
	st.End()
	r.Close()
	keeper.Close()
}

// TestReviewObserverUnreachable: a rank that cannot be reached is no end of the stream.
func TestReviewObserverUnreachable(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(free.Addr().String()).Port()
	free.Close()
	c := &crew{t: t, name: streamName(t), part: 8}
	c.join(2)
	hidden := newSession(t, sst.SessionConfig{AdvertiseAddr: netip.MustParseAddr("127.0.0.1"), AdvertisePort: port})
	c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
		cfg := sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: none(), DataTransport: "evpath"}}
		if rank == 1 {
			cfg.Session = hidden
		}
		return cfg
	}))
	o := attach(t, c.name, sst.ReaderConfig{Observer: true, Params: sst.Params{DataTransport: "evpath", SpeculativePreloadMode: "Off"}})
	attachedBy(t, c.writers[0], "evpath")
	defer c.close()
	c.step()
	st, err := o.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer st.End()
	_, err = step.Read[int64](bounded(t), st, "n")
	t.Log(err)
	if errors.Is(err, sst.ErrStepGone) {
		t.Error("the stream goes on, and the step is still there: rank 1 cannot be reached, which is not what ErrStepGone says")
	}
}

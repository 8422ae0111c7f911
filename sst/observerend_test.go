package sst_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestObserverAtTheEnd: the end of the stream does not wait for an observer. What that has
// not read then it cannot read, and it is told so, which is no failure of the writer. It
// gets to the end of the stream like every reader.
func TestObserverAtTheEnd(t *testing.T) {
	for _, plane := range []string{"native", "evpath"} {
		for _, stays := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the writer's process stays %v", plane, stays), func(t *testing.T) {
				ws := quickSession(t)
				name := streamName(t)
				x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
				o := attach(t, name, sst.ReaderConfig{Observer: true, Params: sst.Params{DataTransport: plane, SpeculativePreloadMode: "Off"}})
				attachedBy(t, x.w, plane)
				x.must(t)
				st, err := o.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := next(t, "Close", async(x.w.Close)); err != nil {
					t.Error(err)
				}
				if !stays {
					ws.Close()
				}
				_, err = step.Read[int64](bounded(t), st, "n")
				wants(t, "reading", err, sst.ErrStepGone)
				if errors.Is(err, sst.ErrWriterFailed) {
					t.Errorf("the writer has not failed: %v", err)
				}
				st.End()
				beginEOF(t, o)
			})
		}
	}
}

// TestObserverUnreachable: a rank that cannot be reached is no end of the stream.
func TestObserverUnreachable(t *testing.T) {
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
	wants(t, "reading", err, sst.ErrWriterFailed)
	if errors.Is(err, sst.ErrStepGone) {
		t.Error("the stream goes on, and the step is still there: rank 1 cannot be reached, which is not what ErrStepGone says")
	}
}

package sst_test

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/step"
)

// TestReadForDroppedReader asks, over a link that has carried no query, for a
// reader that the writer has dropped: a Weft one is answered, for it may be a rank
// that does not know yet that its rank 0 is dead.
func TestReadForDroppedReader(t *testing.T) {
	for _, weft := range []int32{0, 1} {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{}), 10)
		zero := dials(t, name)
		f, parts, err := sstmsg.Encode(&sstmsg.DPQuery{WriterID: zero.stream, Condition: 1, Weft: weft}, sstmsg.Options{Weft: weft != 0})
		if err != nil {
			t.Fatal(err)
		}
		zero.sendRecord(f, parts)
		hear[*sstmsg.DPQueryResponse](zero.fake)
		zero.register()
		zero.activate()
		x.must(t)
		zero.step()

		one := dials(t, name)
		read := &sstmsg.ReadRequest{Length: 8, WriterID: zero.response.Evpath[0].WriterID, ReaderID: fakeData, Rank: 1, Condition: 5}
		one.send(one.link, read)
		if _, m := hear[*sstmsg.ReadReply](one.fake); m.Data.Len() != 8 {
			t.Errorf("reply %+v", m)
		}
		zero.link.Abort(errors.New("dead"))
		testutil.Eventually(t, "the writer has dropped the reader", func() bool { return len(x.w.Info().Readers) == 0 })
		one.send(one.link, read)
		if weft == 0 {
			one.dropped()
			continue
		}
		if _, m := hear[*sstmsg.ReadReply](one.fake); m.Data.Len() != 0 || m.Condition != 5 {
			t.Errorf("reply %+v", m)
		}
	}
}

// TestReadSaysWhy has a read meet what only follows from something: the error is
// of that, though it is known a little later.
func TestReadSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		meets func(p *hostileWriter, l carrier.Link, m *sstmsg.ReadRequest)
		dies  bool // rank 0 of the reader
		want  error
	}{
		"refused, a rank has died":   {refuses, true, sst.ErrRankFailed},
		"link lost, a rank has died": {drops, true, sst.ErrRankFailed},
		"refused":                    {refuses, false, sst.ErrWriterFailed},
		"link lost":                  {drops, false, sst.ErrWriterFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWriter(t, true)
			x := local(t, 2)
			open := async(func() []error {
				return x.open(bounded(t), p.name, all(sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}}))
			})
			reply, _ := p.accept()
			for rank, err := range next(t, "Open", open) {
				if err != nil {
					t.Fatalf("rank %d: %v", rank, err)
				}
			}
			reply(p.aStep(t))
			steps := make([]*step.Step, 2)
			x.each(t, func(rank int, r *sst.Reader) (err error) {
				steps[rank], err = r.BeginStep(bounded(t))
				return err
			})
			got := async(func() error { return verify(bounded(t), steps[1]) })
			l, m := hear[*sstmsg.ReadRequest](p.fake)
			c.meets(p, l, m)
			if c.dies {
				x.dies(0)
			}
			wants(t, "Get", next(t, "Get", got), c.want)
			if c.dies {
				x.mourns(t, "a later Get", verify(bounded(t), steps[1]), 0)
			}
			steps[1].End()
			x.readers[1].Close()
			if !c.dies {
				steps[0].End()
				x.readers[0].Close()
			}
		})
	}
}

func refuses(p *hostileWriter, l carrier.Link, m *sstmsg.ReadRequest) {
	p.send(l, &sstmsg.ReadReply{Step: m.Step, ReaderID: m.ReaderID, Condition: m.Condition})
}

func drops(_ *hostileWriter, l carrier.Link, _ *sstmsg.ReadRequest) { l.Abort(errors.New("dead")) }

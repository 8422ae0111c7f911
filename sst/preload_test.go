package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// TestPreloadToFarRank pushes to a reader rank with a connection of its own, in
// the order of the steps. An ADIOS2 reader of two ranks that got them in any
// order had a wrong byte in one run of twelve.
func TestPreloadToFarRank(t *testing.T) {
	const steps, ranks = 200, 2
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Ranks: ranks}), 10)
	far := newFake(t)
	r := dials(t, name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	m.CP = append(m.CP, sstmsg.CPReader{Contact: far.cm.Contact().String(), ReaderID: fakeControl + 10})
	m.Evpath = append(m.Evpath, sstmsg.EvpathReader{Contact: far.cm.Contact().String(), ReaderID: fakeData + 10})
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.query()
	for range steps {
		x.must(t)
	}
	for n := range int64(steps) {
		for rank := range int64(ranks) {
			_, p := hear[*sstmsg.Preload](far)
			if p.Step != n || p.WriterRank != rank || p.ReaderID != fakeData+10 {
				t.Fatalf("step %d of rank %d to %d, want step %d of rank %d", p.Step, p.WriterRank, p.ReaderID, n, rank)
			}
		}
		for range ranks {
			hear[*sstmsg.Preload](r.fake)
		}
		r.take()
	}
	if err := x.w.Close(); err != nil {
		t.Error(err)
	}
}

// TestPreloadToNobody drops a reader with a rank that cannot be reached.
func TestPreloadToNobody(t *testing.T) {
	v := newVictim(t)
	r := dials(t, v.name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	m.CP = append(m.CP, sstmsg.CPReader{ReaderID: fakeControl + 10})
	m.Evpath = append(m.Evpath, sstmsg.EvpathReader{ReaderID: fakeData + 10})
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.query()
	v.step(t)
	v.unharmed(t) // nobody waits for the release of steps that it got
}

package sst_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// TestReaderThatDoesNotRead asks for each step, gives it back and never takes an
// answer off its socket: a writer does not keep all these steps for the answers.
func TestReaderThatDoesNotRead(t *testing.T) {
	for _, preload := range []int32{0, 1} {
		t.Run(fmt.Sprint("preload ", preload), func(t *testing.T) { readsNothing(t, preload) })
	}
}

func readsNothing(t *testing.T, preload int32) {
	name := streamName(t)
	const n = 1 << 17 // 1 MiB a step
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}}), n)
	honest := attach(t, name, sst.ReaderConfig{Params: sst.Params{DataTransport: "evpath"}})
	r := dials(t, name)
	r.query()
	m := r.registration()
	m.SpecPreload = preload
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	testutil.Eventually(t, "it is there", func() bool { i := x.w.Info(); return len(i.Readers) == 2 && i.Readers[1].Active })
	r.deaf.Lock() // from here on its handler does not return
	hears := sync.OnceFunc(r.deaf.Unlock)
	defer hears()
	for i := range int64(100) {
		x.must(t)
		if preload == 0 {
			r.quietly(&sstmsg.ReadRequest{Step: i, Length: 8 * n, WriterID: r.response.Evpath[0].WriterID, ReaderID: fakeData, Condition: 1})
		}
		r.quietly(&sstmsg.ReleaseTimestep{WriterID: r.wsr(), Step: i})
		takeStep(t, honest)
	}
	if got := x.w.Info().Bytes; got > 64<<20 {
		t.Errorf("%d MiB are held", got>>20)
	}
	within(t, 10*time.Second, "Close", func() {
		if err := x.w.Close(); err != nil {
			t.Error(err)
		}
	})
	hears()
	r.dropped()
}

// quietly sends a message that the other side may not want any more.
func (r *fakeReader) quietly(m sstmsg.Message) {
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Release: sstmsg.ReleaseMain})
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.link.Send(carrier.Record{Format: f, Parts: parts})
}

package sst_test

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// TestReaderThatDoesNotRead asks for each step, gives it back and never takes an
// answer off its socket: a writer does not keep all these steps for the answers.
func TestReaderThatDoesNotRead(t *testing.T) {
	name := streamName(t)
	const n = 1 << 17 // 1 MiB a step
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}}), n)
	honest := attach(t, name, sst.ReaderConfig{})
	r := attaches(t, name)
	for range cap(r.got) { // from here on its handler does not return
		r.got <- heard{}
	}
	for i := range int64(200) {
		x.must(t)
		r.read(i, 8*n)
		r.release(i)
		st, err := honest.BeginStep(bounded(t))
		if err == nil {
			err = verify(bounded(t), st)
		}
		if err != nil {
			t.Fatal(err)
		}
		st.End()
	}
	if got := x.w.Info().Bytes; got > 64<<20 {
		t.Errorf("%d MiB are held", got>>20)
	}
	within(t, 10*time.Second, "Close", func() {
		if err := x.w.Close(); err != nil {
			t.Error(err)
		}
	})
	for range cap(r.got) {
		<-r.got
	}
	r.dropped()
}

// read asks for the first bytes of a step of rank 0.
func (r *fakeReader) read(step, length int64) {
	m := &sstmsg.ReadRequest{Step: step, Length: length, WriterID: r.response.Evpath[0].WriterID, ReaderID: fakeData, Condition: 1}
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Release: sstmsg.ReleaseMain})
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.link.Send(carrier.Record{Format: f, Parts: parts}) // the writer may have dropped it
}

package sst_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/step"
)

// TestF22DataLinkGone is field report F22 for a rank that is not rank 0: the data
// path notices first, and says which rank and which step.
func TestF22DataLinkGone(t *testing.T) {
	const readers = 2
	p, far := newWriter(t, true), newFake(t)
	c := local(t, readers)
	done := async(func() []error { return c.open(bounded(t), p.name, all(sst.ReaderConfig{})) })
	reply, reg := p.answer("evpath")
	m := p.response(reg)
	m.CP = append(m.CP, sstmsg.CPWriter{Contact: far.cm.Contact().String(), WriterID: fakeWSR + 10})
	m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: "there", WriterID: fakeWS + 10})
	reply(m)
	hear[*sstmsg.ReaderActivate](p.fake)
	for rank, err := range next(t, "Open", done) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	reply(p.farStep(t))
	var got []<-chan error
	for rank, r := range c.readers {
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, async(func() error { return verify(bounded(t), st) }))
		if _, q := hear[*sstmsg.ReadRequest](far); q.WriterID != fakeWS+10 || int(q.Rank) != rank {
			t.Errorf("reader rank %d: request %+v", rank, q)
		}
	}
	far.cm.Close()
	check := func(err error) {
		t.Helper()
		wants(t, "Get", err, sst.ErrWriterFailed)
		for _, part := range []string{"step 0", "rank 1"} {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
	}
	for rank, r := range c.readers {
		check(next(t, "Get", got[rank]))
		if info := r.Info(); info.Held != 1 || len(info.Writers) != 2 {
			t.Errorf("%+v", info)
		}
	}
	// The stream goes on: what does not need that rank can be read.
	reply(&sstmsg.WriterClose{ReaderID: p.control()})
	c.close(t)
}

// farStep is a step of two ranks whose data is all in rank 1.
func (p *hostileWriter) farStep(t *testing.T) *sstmsg.TimestepMetadata {
	t.Helper()
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Ranks: 2}), 100)
	r := attaches(t, name)
	st, err := x.w.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.v.Put(st.Rank(1), step.Box{Count: []uint64{100}}, make([]int64, 100)); err != nil {
		t.Fatal(err)
	}
	if err := st.End(bounded(t)); err != nil {
		t.Fatal(err)
	}
	m := r.step()
	m.ReaderID = p.control()
	return m
}

// TestF85ShortDestination is field report F85 over a stream.
func TestF85ShortDestination(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{}), 1000)
		r := attach(t, name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
		x.must(t)
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		v, err := step.Lookup[int64](st, "n")
		if err != nil {
			t.Fatal(err)
		}
		buf := slices.Repeat([]int64{-7}, 1000)
		_, err = v.Get(bounded(t), step.All, buf[:999:999])
		if err == nil || !strings.Contains(err.Error(), "999") || !strings.Contains(err.Error(), "1000") {
			t.Errorf("preload %s: %v", mode, err)
		}
		if slices.ContainsFunc(buf, func(x int64) bool { return x != -7 }) {
			t.Errorf("preload %s: something was written", mode)
		}
		st.End()
	}
}

// TestObserverRegisters asks a Weft writer to be left out of its counts, and refuses to
// look on where the writer would count it.
func TestObserverRegisters(t *testing.T) {
	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{Observer: true})
	p.accept()
	if p.reg.Observer != 1 {
		t.Error("the registration does not say that we only look")
	}
	r := next(t, "Open", open).reader(t)
	if !r.Info().Observer {
		t.Error("Info does not say so")
	}
	plain := newWriter(t, true)
	open = plain.opens(t, sst.ReaderConfig{})
	plain.accept()
	if plain.reg.Observer != 0 || next(t, "Open", open).reader(t).Info().Observer {
		t.Error("a reader that did not ask is an observer")
	}
	adios := newWriter(t, false)
	o := next(t, "Open", adios.opens(t, sst.ReaderConfig{Observer: true}))
	wants(t, "Open", o.err, sst.ErrParam)
	select {
	case h := <-adios.got:
		t.Errorf("a %T was sent", h.msg)
	default:
	}
}

// acceptOn is accept that returns the link.
func (p *hostileWriter) acceptOn() carrier.Link {
	p.t.Helper()
	reply, reg := p.answer("evpath")
	reply(p.response(reg))
	l, _ := hear[*sstmsg.ReaderActivate](p.fake)
	return l
}

// TestEvicted is told by a Weft writer why the stream ends for it alone.
func TestEvicted(t *testing.T) {
	for code, want := range map[int32]error{sstmsg.CloseEvicted: sst.ErrEvicted, sstmsg.CloseFailed: sst.ErrWriterFailed} {
		p := newWriter(t, true)
		c := local(t, 2)
		done := async(func() []error { return c.open(bounded(t), p.name, all(sst.ReaderConfig{})) })
		l := p.acceptOn()
		for rank, err := range next(t, "Open", done) {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		f, parts, err := sstmsg.Encode(&sstmsg.WriterClose{ReaderID: p.control(), Code: code, Reason: "rank 3 took too long"}, sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Send(carrier.Record{Format: f, Parts: parts}); err != nil {
			t.Fatal(err)
		}
		for rank, r := range c.readers {
			_, err := r.BeginStep(bounded(t))
			wants(t, fmt.Sprint("BeginStep of rank ", rank), err, want)
			if err != nil && !strings.Contains(err.Error(), "rank 3 took too long") {
				t.Errorf("%v does not say why", err)
			}
		}
		c.close(t)
	}
}

// TestWriterParams tells what the writer has set.
func TestWriterParams(t *testing.T) {
	name := streamName(t)
	create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 7, QueueFullPolicy: "Discard"}})
	c := attachRanks(t, name, 2, sst.ReaderConfig{})
	for rank, r := range c.readers {
		got := map[string]string{}
		for _, p := range r.WriterParams() {
			got[p.Name] = p.Value
		}
		for n, want := range map[string]string{
			"QueueLimit": "7", "QueueFullPolicy": "Discard", "MarshalMethod": "BP5", "CPCommPattern": "Min", "StepDistributionMode": "AllToAll", "DataTransport": "evpath",
		} {
			if got[n] != want {
				t.Errorf("rank %d: %s is %q, want %q", rank, n, got[n], want)
			}
		}
	}
}

// TestWaited counts the time in BeginStep, and the lag.
func TestWaited(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	r := attach(t, name, sst.ReaderConfig{})
	if info := r.Info(); info.Waited != 0 || info.Taken != 0 || info.Lag != 0 {
		t.Errorf("%+v", info)
	}
	ctx, cancel := context.WithTimeout(bounded(t), 20*time.Millisecond)
	defer cancel()
	_, err := r.BeginStep(ctx)
	wants(t, "BeginStep", err, context.DeadlineExceeded)
	if got := r.Info().Waited; got < 15*time.Millisecond || got > patience {
		t.Errorf("waited %v", got)
	}
	for range 3 {
		x.must(t)
	}
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "all steps are known", func() bool { return r.Info().Lag == 3 })
	st.End()
	if info := r.Info(); info.Lag != 2 || info.Taken != 1 || info.Queued != 2 {
		t.Errorf("%+v", info)
	}
}

// TestContactFromScreen takes the contact from a person.
func TestContactFromScreen(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	b, err := os.ReadFile(name + ".sst")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(b), "\n")
	screen := sst.Params{RegistrationMethod: "Screen"}
	r := attach(t, "any name", sst.ReaderConfig{Params: screen, Screen: strings.NewReader("what was copied:\n\t" + line + "\nmore")})
	x.must(t)
	takeStep(t, r)
	_, err = sst.Open(bounded(t), "any name", sst.ReaderConfig{Session: quickSession(t), Params: screen, Screen: strings.NewReader("nothing of use\n")})
	wants(t, "Open without a contact", err, sst.ErrContact)
	leaveStale(t, name+"2")
	b, err = os.ReadFile(name + "2.sst")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ = strings.Cut(string(b), "\n")
	_, err = sst.Open(bounded(t), "any name", sst.ReaderConfig{Session: quickSession(t), Params: screen, Screen: strings.NewReader(line)})
	wants(t, "Open of a writer that is gone", err, sst.ErrStale)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	screen.OpenTimeoutSecs = 1
	within(t, 2*time.Second, "Open", func() {
		_, err = sst.Open(bounded(t), "any name", sst.ReaderConfig{Session: quickSession(t), Params: screen, Screen: in})
		wants(t, "Open while nobody types", err, sst.ErrTimeout)
	})
}

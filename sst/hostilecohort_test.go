package sst_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// crewVictim is a writer cohort that others try to hurt, with an honest reader
// that must not notice.
type crewVictim struct {
	*crew
	honest *sst.Reader
}

func newCrewVictim(t *testing.T, cfg sst.WriterConfig) *crewVictim {
	t.Helper()
	c := newCrew(t, 3, cfg)
	return &crewVictim{c, attach(t, c.name, sst.ReaderConfig{})}
}

func (v *crewVictim) take(t *testing.T) {
	t.Helper()
	st, err := v.honest.BeginStep(bounded(t))
	if err == nil {
		err = verify(bounded(t), st)
	}
	if err != nil {
		t.Fatalf("the honest reader: %v", err)
	}
	st.End()
}

// lag is how far the honest reader, the first, is behind.
func (v *crewVictim) lag() int64 { return v.writers[0].Info().Readers[0].Lag }

// unharmed goes on for some steps and to the end, which nobody must hold up.
func (v *crewVictim) unharmed(t *testing.T) {
	t.Helper()
	for range 2 {
		v.step()
		v.take(t)
	}
	within(t, patience/2, "Close", func() { v.must(v.close()) })
	beginEOF(t, v.honest)
	empty(t, v.name)
}

// rankLink connects a fake reader to a rank of the writer.
func (r *fakeReader) rankLink(rank int) carrier.Link {
	r.t.Helper()
	c, err := cm.ParseContact(r.response.CP[rank].Contact)
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := r.cm.Dial(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// TestHostileReaderOfCohort addresses ranks with what belongs to other ranks, or
// to nobody: the rank that it comes to drops the connection, or passes it over.
func TestHostileReaderOfCohort(t *testing.T) {
	request := func(r *fakeReader, id int64) *sstmsg.ReadRequest {
		return &sstmsg.ReadRequest{Step: 0, Length: 8, WriterID: id, ReaderID: fakeData, Condition: 5}
	}
	for name, c := range map[string]struct {
		attack func(r *fakeReader, l carrier.Link)
		drops  bool
	}{
		"data of rank 0 at rank 1":       {func(r *fakeReader, l carrier.Link) { r.send(l, request(r, r.response.Evpath[0].WriterID)) }, true},
		"data of rank 2 at rank 1":       {func(r *fakeReader, l carrier.Link) { r.send(l, request(r, r.response.Evpath[2].WriterID)) }, true},
		"the control identity of rank 1": {func(r *fakeReader, l carrier.Link) { r.send(l, request(r, r.response.CP[1].WriterID)) }, true},
		"much more than there is": {func(r *fakeReader, l carrier.Link) {
			m := request(r, r.response.Evpath[1].WriterID)
			m.Length = 1 << 62
			r.send(l, m)
		}, true},
		"a step that is not there": {func(r *fakeReader, l carrier.Link) {
			m := request(r, r.response.Evpath[1].WriterID)
			m.Step = 9
			r.send(l, m)
		}, true},
		"the stream's number at rank 1":        {func(r *fakeReader, l carrier.Link) { r.send(l, &sstmsg.DPQuery{WriterID: r.stream}) }, true},
		"a registration at rank 1":             {func(r *fakeReader, l carrier.Link) { r.send(l, r.registration()) }, true},
		"a question at rank 1":                 {func(r *fakeReader, l carrier.Link) { r.send(l, &sstmsg.DPQuery{WriterID: r.wsr()}) }, true},
		"the control identity of rank 0 there": {func(r *fakeReader, l carrier.Link) { r.send(l, &sstmsg.ReaderClose{WriterID: r.wsr()}) }, true},
		"ReaderClose at rank 1": {func(r *fakeReader, l carrier.Link) {
			r.send(l, &sstmsg.ReaderClose{WriterID: r.response.CP[1].WriterID})
		}, false},
		"releases at rank 1": {func(r *fakeReader, l carrier.Link) {
			r.send(l, &sstmsg.ReleaseTimestep{WriterID: r.response.CP[1].WriterID})
		}, false},
		"ReaderActivate at rank 1": {func(r *fakeReader, l carrier.Link) {
			r.send(l, &sstmsg.ReaderActivate{WriterID: r.response.CP[1].WriterID})
		}, false},
		"a step wanted at rank 1": {func(r *fakeReader, l carrier.Link) {
			r.send(l, &sstmsg.ReaderRequestStep{WriterID: r.response.CP[1].WriterID})
		}, false},
		"locked at rank 1": {func(r *fakeReader, l carrier.Link) {
			r.send(l, &sstmsg.LockReaderDefinitions{WriterID: r.response.CP[1].WriterID})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newCrewVictim(t, sst.WriterConfig{})
			r := attaches(t, v.name)
			v.step()
			r.step()
			l := r.rankLink(1)
			c.attack(r, l)
			if c.drops {
				if next(t, "end of the link", r.lost) != l {
					t.Error("another link was dropped")
				}
			} else { // an answer says that all before it was dealt with
				r.send(l, request(r, r.response.Evpath[1].WriterID))
				if _, m := hear[*sstmsg.ReadReply](r.fake); m.Data.Len() != 8 {
					t.Errorf("reply %+v", m)
				}
			}
			v.take(t)
			r.cm.Close()
			v.unharmed(t)
		})
	}
}

// TestManyRegistrations registers again and again on one link and never goes on:
// with a limit on the lag nobody is held up, and what was kept for them is free.
func TestManyRegistrations(t *testing.T) {
	v := newCrewVictim(t, sst.WriterConfig{Params: sst.Params{QueueLimit: 20, LagLimit: 5}})
	r := dials(t, v.name)
	r.query()
	for range testutil.Count(t, 200, 5000) {
		r.register()
	}
	for range 30 {
		v.step()
		v.take(t)
		testutil.Eventually(t, "the step is back", func() bool { return v.lag() == 0 })
	}
	testutil.Eventually(t, "all of them are gone", func() bool { return len(v.writers[0].Info().Readers) == 1 })
	for rank, w := range v.writers {
		testutil.Eventually(t, fmt.Sprintf("rank %d holds nothing", rank), func() bool { return w.Info().Held == 0 })
	}
	r.cm.Close()
	v.unharmed(t)
}

// deaf is a peer that never reads from its socket, but writes all that is wanted.
type deaf struct {
	t    *testing.T
	conn net.Conn
	sent map[string]bool // formats
}

func newDeaf(t *testing.T, contact cm.Contact) *deaf {
	t.Helper()
	addr, err := contact.Addr()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(4096)
	hello := cm.Handshake{Version: 1, FormatServer: cm.SelfHosted, ID: 1234567}
	b := hello.Append(cm.Preamble{}.Append(nil))
	hello.Answer = true
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	return &deaf{t, conn, map[string]bool{}}
}

// say writes a message, and reports whether there was room for it at once.
func (d *deaf) say(m sstmsg.Message, o sstmsg.Options) error {
	f, parts, err := sstmsg.Encode(m, o)
	if err != nil {
		d.t.Fatal(err)
	}
	var b []byte
	if id := f.ID(); !d.sent[string(id[:])] {
		d.sent[string(id[:])] = true
		b = cm.Push(id[:], f.Body()).Append(b)
	}
	b = cm.AppendDataHeader(b, parts)
	for _, p := range parts {
		b = append(b, p...)
	}
	d.conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	_, err = d.conn.Write(b)
	return err
}

// flood says m until it cannot any more, or n times.
func (d *deaf) flood(n int, m sstmsg.Message, o sstmsg.Options) (said int, err error) {
	for said = range n {
		if err = d.say(m, o); err != nil {
			return said, err
		}
	}
	return n, nil
}

// heap is what is in use, without what only pools still have: they let go of it
// in the second collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestDeafPeers ask and never read an answer: what a writer queues for them is
// bounded, and others are served.
func TestDeafPeers(t *testing.T) {
	v := newCrewVictim(t, sst.WriterConfig{})
	stream, contact := readContact(t, v.name)
	before := heap()
	for name, m := range map[string]sstmsg.Message{
		"statistics":    &sstmsg.StatQuery{WriterID: stream, Condition: 3, What: sstmsg.StatAll},
		"queries":       &sstmsg.DPQuery{WriterID: stream, Condition: 3},
		"registrations": newRegistration(stream),
	} {
		d := newDeaf(t, contact)
		said, err := d.flood(testutil.Count(t, 100_000, 1_000_000), m, sstmsg.Options{Weft: true, Release: sstmsg.ReleaseMain})
		t.Logf("%s: %d, %v; %d MB more", name, said, err, (int64(heap())-int64(before))>>20)
		v.step()
		v.take(t)
		d.conn.Close()
	}
	testutil.Eventually(t, "they are gone", func() bool { return len(v.writers[0].Info().Readers) == 1 })
	testutil.Eventually(t, "their memory is free", func() bool { return int64(heap())-int64(before) <= 64<<20 })
	v.unharmed(t)
}

func newRegistration(stream int64) *sstmsg.ReaderRegister {
	return &sstmsg.ReaderRegister{WriterID: stream, Condition: 2,
		CP: []sstmsg.CPReader{{Contact: "x", ReaderID: 1}}, Evpath: []sstmsg.EvpathReader{{Contact: "x", ReaderID: 2}}}
}

// TestOnDemandFlood has a reader that asks for a million steps at once: it gets no
// more than there are, and the other one its share.
func TestOnDemandFlood(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{StepDistributionMode: "OnDemand", QueueLimit: 4}})
	r := attaches(t, c.name)
	for range testutil.Count(t, 20_000, 1_000_000) {
		r.send(r.link, &sstmsg.ReaderRequestStep{WriterID: r.wsr()})
	}
	enough, stop := context.WithCancel(bounded(t))
	go r.each(func(m sstmsg.Message) {
		if m, ok := m.(*sstmsg.TimestepMetadata); ok {
			r.release(m.Step)
		}
	})
	honest := attach(t, c.name, sst.ReaderConfig{})
	got := async(func() error {
		for range 5 {
			st, err := honest.BeginStep(bounded(t))
			if err != nil {
				return err
			}
			if err := verify(bounded(t), st); err != nil {
				return err
			}
			st.End()
		}
		stop()
		return honest.Close()
	})
	wrote := async(func() []error {
		return c.all(func(rank int) error {
			for enough.Err() == nil {
				if err := c.write(enough, rank); err != nil && !errors.Is(err, sst.ErrStepAborted) && enough.Err() == nil {
					return err
				}
			}
			return nil
		})
	})
	if err := next(t, "the honest reader", got); err != nil {
		t.Error(err)
	}
	r.cm.Close()
	c.must(next(t, "writers", wrote))
	c.must(c.close())
}

// TestManyObservers attaches thousands, and asks for statistics meanwhile.
func TestManyObservers(t *testing.T) {
	v := newCrewVictim(t, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}})
	n := testutil.Count(t, 2000, 10_000)
	r := dials(t, v.name)
	r.query()
	for i := range n {
		m := r.registration()
		m.Observer = 1
		m.Condition = int32(i + 2)
		r.sendWeft(m)
		_, r.response = hear[*sstmsg.WriterResponse](r.fake)
		r.activate()
	}
	go r.each(func(sstmsg.Message) {})
	for range 3 {
		v.step()
		v.take(t)
	}
	within(t, patience, "Info", func() {
		for range 10 {
			if got := len(v.writers[0].Info().Readers); got != n+1 {
				t.Errorf("%d readers, want %d", got, n+1)
			}
		}
	})
	within(t, patience, "QueryStat", func() {
		if st, err := sst.QueryStat(bounded(t), v.name, sst.StatConfig{Session: quickSession(t)}); err != nil || len(st.Readers)+st.MoreReaders != n+1 {
			t.Errorf("%d and %d readers: %v", len(st.Readers), st.MoreReaders, err)
		}
	})
	within(t, patience, "all are gone", func() {
		r.cm.Close()
		testutil.Eventually(t, "they are gone", func() bool { return len(v.writers[0].Info().Readers) == 1 })
	})
	v.unharmed(t)
}

// each hands what comes to f, to the end of the test.
func (p *fake) each(f func(sstmsg.Message)) {
	for {
		select {
		case h := <-p.got:
			f(h.msg)
		case <-p.t.Context().Done():
			return
		}
	}
}

// sendWeft sends a message with what only Weft says.
func (r *fakeReader) sendWeft(m sstmsg.Message) {
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Weft: true, Release: sstmsg.ReleaseMain})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendRecord(f, parts)
}

// TestComeAndGo connects and goes again, many times: links and identities that are
// gone do not slow the writer down, nor take memory.
func TestComeAndGo(t *testing.T) {
	v := newCrewVictim(t, sst.WriterConfig{})
	p := newFake(t)
	cycle := func() {
		r := p.dials(v.name)
		r.query()
		r.register()
		r.activate()
		r.link.Abort(errors.New("gone"))
		r.dropped()
	}
	for range 20 {
		cycle()
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	for range testutil.Count(t, 100, 5000) {
		cycle()
	}
	testutil.Eventually(t, "they are gone", func() bool { return len(v.writers[0].Info().Readers) == 1 })
	if more := int64(heap()) - int64(before); more > 8<<20 {
		t.Errorf("%d MB more", more>>20)
	}
	testutil.Eventually(t, "goroutines", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	v.unharmed(t)
}

// TestSlowPeer reads one byte now and then: steps go on for the others, up to the
// limit of the queue, and a context ends the wait for it.
func TestSlowPeer(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{CloseTimeout: 200 * time.Millisecond, Params: sst.Params{QueueLimit: 2}})
	r := attaches(t, c.name) // releases nothing
	for range 2 {
		c.step()
	}
	within(t, time.Second, "End", func() {
		errs := c.all(func(rank int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			return c.write(ctx, rank)
		})
		c.wants("End", errs, sst.ErrStepAborted)
	})
	r.release(0)
	c.step()
	within(t, 2*time.Second, "Close", func() {
		for rank, err := range c.close() {
			if err != nil && !errors.Is(err, sst.ErrTimeout) && !errors.Is(err, sst.ErrRankFailed) {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
	})
}

// TestManySilentRanks registers ranks at addresses that take connections and say
// nothing: the writer has few of them open at a time, and forgets the reader.
func TestManySilentRanks(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conns := make(chan net.Conn, 4096)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	v := newCrewVictim(t, sst.WriterConfig{})
	r := dials(t, v.name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	addr := netip.MustParseAddrPort(l.Addr().String())
	for i := range uint32(2000) {
		c, err := cm.NewContact(addr, 1000+i)
		if err != nil {
			t.Fatal(err)
		}
		m.CP = append(m.CP, sstmsg.CPReader{Contact: c.String(), ReaderID: int64(i)})
		m.Evpath = append(m.Evpath, sstmsg.EvpathReader{Contact: c.String(), ReaderID: int64(i)})
	}
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	go r.each(func(sstmsg.Message) {})
	testutil.Eventually(t, "it is active", func() bool { i := v.writers[0].Info(); return len(i.Readers) == 2 && i.Readers[1].Active })
	v.step()
	v.take(t)
	seen := 0
	for quiet := false; !quiet; {
		select {
		case c := <-conns:
			seen++
			defer c.Close()
		case <-time.After(500 * time.Millisecond):
			quiet = true
		}
	}
	if seen > 3*32 {
		t.Errorf("%d connections at a time", seen)
	}
	r.cm.Close()
	v.unharmed(t)
}

package sst_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// victim is a writer that others try to hurt, with an honest reader that must
// not notice.
type victim struct {
	name   string
	x      *numbers
	honest *sst.Reader
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{name: streamName(t)}
	v.x = define(t, create(t, v.name, sst.WriterConfig{}), 100)
	v.honest = attach(t, v.name, sst.ReaderConfig{})
	return v
}

// step writes one and has the honest reader read it.
func (v *victim) step(t *testing.T) {
	t.Helper()
	v.x.must(t)
	v.take(t)
}

func (v *victim) take(t *testing.T) {
	t.Helper()
	st, err := v.honest.BeginStep(bounded(t))
	if err != nil {
		t.Fatalf("the honest reader: %v", err)
	}
	if err := verify(bounded(t), st); err != nil {
		t.Fatalf("the honest reader: %v", err)
	}
	st.End()
}

// unharmed goes on for some steps and to the end, which nobody must hold up.
func (v *victim) unharmed(t *testing.T) {
	t.Helper()
	v.step(t)
	v.step(t)
	within(t, patience/2, "Close", func() {
		if err := v.x.w.Close(); err != nil {
			t.Error(err)
		}
	})
	beginEOF(t, v.honest)
	empty(t, v.name)
}

// TestHostileReader sends what a writer must answer by dropping the connection.
func TestHostileReader(t *testing.T) {
	read := func(r *fakeReader, change func(*sstmsg.ReadRequest)) {
		m := &sstmsg.ReadRequest{Step: 0, Offset: 0, Length: 8, WriterID: r.response.Evpath[0].WriterID, ReaderID: fakeData, Condition: 5}
		change(m)
		r.send(r.link, m)
	}
	for name, attack := range map[string]func(r *fakeReader){
		"read beyond the block":      func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Length = 1 << 20 }) },
		"read far beyond the block":  func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Offset = 1 << 62 }) },
		"read of negative offset":    func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Offset = -8 }) },
		"read of negative length":    func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Length = -1 }) },
		"read that wraps around":     func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Offset, m.Length = 8, -8 }) },
		"read of a step to come":     func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Step = 1000 }) },
		"read of a negative step":    func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.Step = -1 }) },
		"read by a control identity": func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.WriterID = r.wsr() }) },
		"read by a guess":            func(r *fakeReader) { read(r, func(m *sstmsg.ReadRequest) { m.WriterID = 1 }) },
		"release by a guess":         func(r *fakeReader) { r.send(r.link, &sstmsg.ReleaseTimestep{WriterID: 1, Step: 0}) },
		"release by a data identity": func(r *fakeReader) {
			r.send(r.link, &sstmsg.ReleaseTimestep{WriterID: r.response.Evpath[0].WriterID, Step: 0})
		},
		"close of nobody":         func(r *fakeReader) { r.send(r.link, &sstmsg.ReaderClose{WriterID: 77}) },
		"close of zero":           func(r *fakeReader) { r.send(r.link, &sstmsg.ReaderClose{}) },
		"query of another stream": func(r *fakeReader) { r.send(r.link, &sstmsg.DPQuery{WriterID: r.stream + 1}) },
		"query by our identity":   func(r *fakeReader) { r.send(r.link, &sstmsg.DPQuery{WriterID: r.wsr()}) },
		"register elsewhere": func(r *fakeReader) {
			m := r.registration()
			m.WriterID++
			r.send(r.link, m)
		},
		"register for rdma": func(r *fakeReader) {
			m := r.registration()
			m.Evpath, m.Rdma = nil, []sstmsg.RdmaReader{{}}
			r.send(r.link, m)
		},
		"register nobody": func(r *fakeReader) {
			m := r.registration()
			m.CP, m.Evpath = nil, nil
			r.send(r.link, m)
		},
		"speak as a writer":        func(r *fakeReader) { r.send(r.link, &sstmsg.WriterClose{ReaderID: fakeControl}) },
		"speak as a writer to one": func(r *fakeReader) { r.send(r.link, &sstmsg.TimestepMetadata{ReaderID: r.wsr(), Step: 1}) },
		"reply to a writer": func(r *fakeReader) {
			r.send(r.link, &sstmsg.ReadReply{ReaderID: r.response.Evpath[0].WriterID, Condition: 1})
		},
		"push to a writer, as data": func(r *fakeReader) { r.send(r.link, &sstmsg.Preload{ReaderID: r.response.Evpath[0].WriterID}) },
		"push to a writer":          func(r *fakeReader) { r.send(r.link, &sstmsg.Preload{ReaderID: r.wsr()}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			r := attaches(t, v.name)
			v.x.must(t) // the fake holds step 0 from here on
			r.step()
			attack(r)
			r.dropped()
			v.take(t)
			v.unharmed(t)
		})
	}
}

// TestRudeReader does what is wrong but harmless: the writer shrugs.
func TestRudeReader(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, r *fakeReader){
		"activates twice": func(t *testing.T, r *fakeReader) {
			r.activate()
			r.activate()
		},
		"releases what it does not hold": func(t *testing.T, r *fakeReader) {
			for _, n := range []int64{-1, 7, 1 << 62, -1 << 63} {
				r.release(n)
			}
		},
		"locks": func(t *testing.T, r *fakeReader) {
			r.send(r.link, &sstmsg.LockReaderDefinitions{WriterID: r.wsr(), Step: 0})
		},
		"asks for nothing": func(t *testing.T, r *fakeReader) {
			r.send(r.link, &sstmsg.ReadRequest{Step: 0, WriterID: r.response.Evpath[0].WriterID, ReaderID: fakeData, Condition: 9})
			if _, m := hear[*sstmsg.ReadReply](r.fake); m.Condition != 9 || m.Data.Len() != 0 {
				t.Errorf("reply %+v", m)
			}
		},
		"asks after it has left": func(t *testing.T, r *fakeReader) {
			r.send(r.link, &sstmsg.ReaderClose{WriterID: r.wsr()})
			r.release(0)
			r.send(r.link, &sstmsg.ReaderClose{WriterID: r.wsr()})
			*r = fakeReader{fake: r.fake, link: r.link, stream: r.stream}
			r.register() // and comes again, on the same link
			r.activate()
			r.step() // which is still held for the honest one
		},
		"registers again": func(t *testing.T, r *fakeReader) {
			old := r.wsr()
			r.register()
			if r.wsr() == old {
				t.Error("an identity is given out twice")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			r := attaches(t, v.name)
			v.x.must(t)
			r.step()
			attack(t, r)
			// An answer to a query says that all before it has been dealt with.
			r.query()
			v.take(t)
			r.cm.Close()
			v.unharmed(t)
		})
	}
}

// TestAbsurdCohort registers a great many ranks, with contacts that nobody can
// dial, and asks for preload.
func TestAbsurdCohort(t *testing.T) {
	v := newVictim(t)
	r := dials(t, v.name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	const ranks = 20_000
	m.CP = append(m.CP, make([]sstmsg.CPReader, ranks)...)
	m.Evpath = append(m.Evpath, make([]sstmsg.EvpathReader, ranks)...)
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.query()
	v.step(t)
	r.cm.Close()
	v.unharmed(t)
}

// TestReaderLostWhileOpening leaves at every point of the opening
// (docs/wire/sst.md §9.3: real writers hang or crash).
func TestReaderLostWhileOpening(t *testing.T) {
	for i, phase := range []string{"connected", "queried", "registered", "answered", "activated"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			r := dials(t, v.name)
			if i >= 1 {
				r.query()
			}
			switch {
			case i == 2:
				r.send(r.link, r.registration())
			case i >= 3:
				r.register()
			}
			if i >= 4 {
				r.activate()
			}
			v.step(t)
			r.link.Abort(errors.New("gone"))
			v.unharmed(t)
		})
	}
}

// TestGarbage speaks no protocol at all to a session.
func TestGarbage(t *testing.T) {
	v := newVictim(t)
	_, contact := readContact(t, v.name)
	addr, err := contact.Addr()
	if err != nil {
		t.Fatal(err)
	}
	hello := cm.Handshake{Version: 1, FormatServer: cm.SelfHosted, ID: 99}.Append(cm.Preamble{}.Append(nil))
	for name, bytes := range map[string]string{
		"http":                "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"zeros":               strings.Repeat("\x00", 4096),
		"a long record":       string(hello) + "\x00DMC\xff\xff\xff\x7f",
		"a negative record":   string(hello) + "\x00DMC\xff\xff\xff\xff",
		"a second handshake":  string(hello) + string(hello[4:]),
		"an unknown format":   string(hello) + string(cm.Data{Record: make([]byte, 100)}.Append(nil)),
		"a format of nothing": string(hello) + string(cm.Push(make([]byte, 12), make([]byte, 50)).Append(nil)),
	} {
		conn, err := net.Dial("tcp4", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write([]byte(bytes))
		if name == "a long record" {
			conn.(*net.TCPConn).CloseWrite() // it would wait for the rest, rightly
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Errorf("%s: the connection was not closed", name)
			}
		}
		conn.Close()
	}
	v.unharmed(t)
}

// hostileWriter is a fake that publishes a stream.
type hostileWriter struct {
	*fake
	name string
	reg  *sstmsg.ReaderRegister // of the last reader
}

const (
	fakeStream = 4711
	fakeWSR    = 601 // what the fake calls its reader
	fakeWS     = 602
)

func newWriter(t *testing.T, mark bool) *hostileWriter {
	t.Helper()
	p := &hostileWriter{fake: newFake(t), name: streamName(t)}
	p.publish(p.name, fakeStream, mark)
	return p
}

// answer goes through the opening up to the reader's registration.
func (p *hostileWriter) answer(plane string) (reply func(sstmsg.Message), reg *sstmsg.ReaderRegister) {
	p.t.Helper()
	l, q := hear[*sstmsg.DPQuery](p.fake)
	if q.WriterID != fakeStream {
		p.t.Errorf("query for stream %d", q.WriterID)
	}
	p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: plane})
	if plane != "evpath" {
		return nil, nil
	}
	l, reg = hear[*sstmsg.ReaderRegister](p.fake)
	p.reg = reg
	return func(m sstmsg.Message) { p.t.Helper(); p.send(l, m) }, reg
}

func (p *hostileWriter) response(reg *sstmsg.ReaderRegister) *sstmsg.WriterResponse {
	return &sstmsg.WriterResponse{
		Condition: reg.Condition, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5, IsRowMajor: 1},
		CP:     []sstmsg.CPWriter{{Contact: p.cm.Contact().String(), WriterID: fakeWSR}},
		Evpath: []sstmsg.EvpathWriter{{Contact: "here", WriterID: fakeWS}},
	}
}

// accept lets a reader in.
func (p *hostileWriter) accept() (reply func(sstmsg.Message), reg *sstmsg.ReaderRegister) {
	p.t.Helper()
	reply, reg = p.answer("evpath")
	reply(p.response(reg))
	if _, m := hear[*sstmsg.ReaderActivate](p.fake); m.WriterID != fakeWSR {
		p.t.Errorf("activated %d", m.WriterID)
	}
	return reply, reg
}

// opens opens the fake's stream in the background.
func (p *hostileWriter) opens(t *testing.T, cfg sst.ReaderConfig) <-chan opened {
	if cfg.Session == nil {
		cfg.Session = quickSession(t)
	}
	return async(func() opened {
		r, err := sst.Open(bounded(t), p.name, cfg)
		return opened{r, err}
	})
}

type opened struct {
	r   *sst.Reader
	err error
}

func (o opened) reader(t *testing.T) *sst.Reader {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	t.Cleanup(func() { o.r.Close() })
	return o.r
}

// TestPlane is a writer that serves what we lack: leave before registering.
func TestPlane(t *testing.T) {
	p := newWriter(t, false)
	open := p.opens(t, sst.ReaderConfig{})
	p.answer("ucx")
	err := next(t, "Open", open).err
	wants(t, "Open", err, sst.ErrPlane)
	for _, part := range []string{"ucx", "evpath", "DataTransport", "WAN"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not mention %s", err, part)
		}
	}
	p.dropped()
	if len(p.got) != 0 {
		t.Error("something was sent after the refusal")
	}
}

// TestWeftQuery tells Weft writers, and only those, who we are.
func TestWeftQuery(t *testing.T) {
	for _, mark := range []bool{true, false} {
		p := newWriter(t, mark)
		open := p.opens(t, sst.ReaderConfig{})
		l, q := hear[*sstmsg.DPQuery](p.fake)
		if (q.Weft != 0) != mark {
			t.Errorf("contact with a mark: %v, version in the query: %d", mark, q.Weft)
		}
		p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: "no"})
		wants(t, "Open", next(t, "Open", open).err, sst.ErrPlane)
	}
}

// TestRefusals finish the handshake before they say no.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sstmsg.WriterResponse)
		want   error
	}{
		"marshalling":   {func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 1 }, sst.ErrMarshal},
		"no parameters": {func(m *sstmsg.WriterResponse) { m.Params = nil }, nil},
		"no data ranks": {func(m *sstmsg.WriterResponse) { m.Evpath = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWriter(t, true)
			open := p.opens(t, sst.ReaderConfig{})
			reply, reg := p.answer("evpath")
			m := p.response(reg)
			c.change(m)
			reply(m)
			hear[*sstmsg.ReaderActivate](p.fake)
			hear[*sstmsg.ReaderClose](p.fake)
			err := next(t, "Open", open).err
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Open: %v, want %v", err, c.want)
			}
			p.dropped()
		})
	}
}

// TestWriterGone loses the writer at each point of the stream.
func TestWriterGone(t *testing.T) {
	t.Run("before the answer", func(t *testing.T) {
		p := newWriter(t, true)
		open := p.opens(t, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1}})
		l, _ := hear[*sstmsg.DPQuery](p.fake)
		p.cm.Close()
		_ = l
		o := next(t, "Open", open)
		if o.err == nil {
			t.Error("no error")
		}
	})
	t.Run("before the response", func(t *testing.T) {
		p := newWriter(t, true)
		open := p.opens(t, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1}})
		p.answer("evpath")
		p.cm.Close()
		wants(t, "Open", next(t, "Open", open).err, sst.ErrWriterFailed)
	})
	t.Run("while streaming", func(t *testing.T) {
		p := newWriter(t, true)
		open := p.opens(t, sst.ReaderConfig{})
		p.accept()
		r := next(t, "Open", open).reader(t)
		begun := async(func() error { _, err := r.BeginStep(bounded(t)); return err })
		p.cm.Close()
		err := next(t, "BeginStep", begun)
		wants(t, "BeginStep", err, sst.ErrWriterFailed)
		if se, ok := errors.AsType[*sst.Error](err); !ok || se.Peer == "" {
			t.Errorf("%v does not name the writer", err)
		}
	})
	t.Run("after WriterClose", func(t *testing.T) {
		p := newWriter(t, true)
		open := p.opens(t, sst.ReaderConfig{})
		reply, _ := p.accept()
		r := next(t, "Open", open).reader(t)
		reply(&sstmsg.WriterClose{ReaderID: p.control(), FinalStep: -1})
		p.cm.Close()
		beginEOF(t, r)
	})
}

// control and data are the identities that the reader gave us.
func (p *hostileWriter) control() int64 { return p.reg.CP[0].ReaderID }
func (p *hostileWriter) data() int64    { return p.reg.Evpath[0].ReaderID }

// aStep is a step of a real writer, told by the fake: an honest Weft writer
// makes it for a fake reader.
func (p *hostileWriter) aStep(t *testing.T) *sstmsg.TimestepMetadata {
	t.Helper()
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 100)
	r := attaches(t, name)
	x.must(t)
	m := r.step()
	m.ReaderID = p.control()
	return m
}

// TestF22WriterGoneInGet is field report F22: a fetch that cannot be answered ends
// with the right error, and never with zeros.
func TestF22WriterGoneInGet(t *testing.T) {
	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}})
	reply, _ := p.accept()
	r := next(t, "Open", open).reader(t)
	reply(p.aStep(t))
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	got := async(func() error { return verify(bounded(t), st) })
	if _, m := hear[*sstmsg.ReadRequest](p.fake); m.WriterID != fakeWS || m.ReaderID != p.data() || m.Length != 800 {
		t.Errorf("request %+v", m)
	}
	p.cm.Close()
	err = next(t, "Get", got)
	wants(t, "Get", err, sst.ErrWriterFailed)
	wants(t, "a later Get", verify(bounded(t), st), sst.ErrWriterFailed)
	st.End()
	_, err = r.BeginStep(bounded(t))
	wants(t, "BeginStep", err, sst.ErrWriterFailed)
}

// TestPreloadedStepSurvives keeps what is complete here readable.
func TestPreloadedStepSurvives(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 100)
	src := dials(t, name)
	src.query()
	m := src.registration()
	m.SpecPreload = 1
	src.send(src.link, m)
	_, src.response = hear[*sstmsg.WriterResponse](src.fake)
	src.activate()
	x.must(t)
	_, block := hear[*sstmsg.Preload](src.fake)
	meta := src.step()

	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "On"}})
	reply, reg := p.accept()
	if reg.SpecPreload == 0 {
		t.Error("preload was not asked for")
	}
	r := next(t, "Open", open).reader(t)
	block.ReaderID, meta.ReaderID = p.data(), p.control()
	reply(block)
	reply(block) // a repeat
	reply(meta)
	p.cm.Close()
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(bounded(t), st); err != nil {
		t.Error(err)
	}
	st.End()
	_, err = r.BeginStep(bounded(t))
	wants(t, "BeginStep", err, sst.ErrWriterFailed)
}

// TestHostileWriter sends a reader what makes no sense: an error, no panic, no
// wait.
func TestHostileWriter(t *testing.T) {
	junk := sstmsg.ByteBlob([]byte("this is no record of any format, whatever its length may be"))
	for name, attack := range map[string]func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message{
		"format that is none": func(_ *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Formats = []sstmsg.FormatBlock{{ID: sstmsg.ByteBlob(make([]byte, 12)), Body: junk}}
			return []sstmsg.Message{m}
		},
		"format ID too short": func(_ *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Formats[0].ID = sstmsg.ByteBlob([]byte{1})
			return []sstmsg.Message{m}
		},
		"format left out": func(_ *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Formats = nil
			return []sstmsg.Message{m}
		},
		"metadata that are none": func(_ *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Metadata = []sstmsg.Block{{Data: junk}}
			return []sstmsg.Message{m}
		},
		"attributes that are none": func(_ *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Attributes = []sstmsg.Block{{Data: junk}}
			return []sstmsg.Message{m}
		},
		"steps that go back": func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.Step = 5
			back := *m
			back.Step, back.Metadata, m.Metadata = 4, nil, nil
			return []sstmsg.Message{m, &back}
		},
		"wrong direction": func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			return []sstmsg.Message{&sstmsg.ReleaseTimestep{WriterID: p.control()}}
		},
		"a read from a reader": func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			return []sstmsg.Message{&sstmsg.ReadRequest{WriterID: p.data(), Length: 8}}
		},
		"an identity that is not ours": func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.ReaderID = 3
			return []sstmsg.Message{m}
		},
		"control and data mixed up": func(p *hostileWriter, m *sstmsg.TimestepMetadata) []sstmsg.Message {
			m.ReaderID = p.data()
			return []sstmsg.Message{m}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWriter(t, true)
			open := p.opens(t, sst.ReaderConfig{})
			reply, _ := p.accept()
			r := next(t, "Open", open).reader(t)
			for _, m := range attack(p, p.aStep(t)) {
				reply(m)
			}
			_, err := r.BeginStep(bounded(t))
			if err == nil || err == io.EOF {
				t.Errorf("BeginStep: %v", err)
			}
			if strings.Contains(name, "metadata") || strings.Contains(name, "left out") {
				return // that step is lost, not the stream
			}
			if _, err := r.BeginStep(bounded(t)); err == nil || err == io.EOF {
				t.Errorf("BeginStep afterwards: %v", err)
			}
		})
	}
}

// TestShortReply must not leave the rest of a result as it was.
func TestShortReply(t *testing.T) {
	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}})
	reply, _ := p.accept()
	r := next(t, "Open", open).reader(t)
	reply(p.aStep(t))
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	got := async(func() error { return verify(bounded(t), st) })
	_, q := hear[*sstmsg.ReadRequest](p.fake)
	reply(&sstmsg.ReadReply{Step: q.Step, ReaderID: q.ReaderID, Condition: q.Condition, Data: sstmsg.ByteBlob(make([]byte, 799))})
	if err := next(t, "Get", got); err == nil || !strings.Contains(err.Error(), "799") {
		t.Errorf("799 bytes for 800: %v", err)
	}
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		t.Fatal(err)
	}
	again := async(func() error { _, err := v.Get(bounded(t), step.All, nil); return err })
	_, q = hear[*sstmsg.ReadRequest](p.fake)
	reply(&sstmsg.ReadReply{Step: q.Step, ReaderID: q.ReaderID, Condition: q.Condition, Data: sstmsg.ByteBlob(make([]byte, 800))})
	if err := next(t, "Get", again); err != nil {
		t.Errorf("the stream does not go on: %v", err)
	}
	st.End()
	if _, m := hear[*sstmsg.ReleaseTimestep](p.fake); m.WriterID != fakeWSR || m.Step != 0 {
		t.Errorf("release %+v", m)
	}
	if fmt.Sprint(r.Info().Writer) == "" {
		t.Error("no address")
	}
}

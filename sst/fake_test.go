package sst_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// fake is a peer that says what the test tells it to. Below the messages it is
// well behaved; a peer that is not even that is a bare net.Conn.
type fake struct {
	t    testing.TB
	cm   *carrier.CM
	got  chan heard
	lost chan carrier.Link
	deaf sync.RWMutex // locked while it reads nothing
}

// heard is a message as the fake got it.
type heard struct {
	link carrier.Link
	msg  sstmsg.Message
}

func newFake(t testing.TB) *fake {
	t.Helper()
	p := &fake{t: t, got: make(chan heard, 4096), lost: make(chan carrier.Link, 64)}
	c, err := carrier.NewCM(context.Background(), carrier.Config{
		Handler: (*fakeHandler)(p), ListenAddr: netip.MustParseAddrPort("127.0.0.1:0"), CloseTimeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.cm = c
	t.Cleanup(func() { c.Close() })
	return p
}

type fakeHandler fake

// Message keeps what can be decoded.
func (p *fakeHandler) Message(l carrier.Link, in carrier.Inbound) {
	p.deaf.RLock()
	defer p.deaf.RUnlock()
	m, err := sstmsg.Decode(in.Format, in.Data)
	if err != nil {
		p.t.Errorf("the fake cannot read a %s: %v", in.Format.Name(), err)
		return
	}
	p.got <- heard{l, m}
}

func (p *fakeHandler) Lost(l carrier.Link, _ error) { p.lost <- l }

func (p *fake) send(l carrier.Link, m sstmsg.Message) {
	p.t.Helper()
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Release: sstmsg.ReleaseMain})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := l.Send(carrier.Record{Format: f, Parts: parts}); err != nil {
		p.t.Logf("the fake cannot send a %s: %v", sstmsg.Name(m), err)
	}
}

// hear waits for the next message, which must be an M.
func hear[M sstmsg.Message](p *fake) (carrier.Link, M) {
	p.t.Helper()
	h := next(p.t, fmt.Sprintf("%T", *new(M)), p.got)
	m, ok := h.msg.(M)
	if !ok {
		p.t.Fatalf("the fake got a %T (%+v), want a %T", h.msg, h.msg, *new(M))
	}
	return h.link, m
}

// publish makes the fake a writer: it leaves a contact file. A mark says that
// the writer is Weft.
func (p *fake) publish(name string, stream int64, mark bool) {
	p.t.Helper()
	c := p.cm.Contact()
	if !mark {
		atom := markAtom(p.t)
		plain := c[:0:0]
		for _, a := range c {
			if a.Atom != atom {
				plain = append(plain, a)
			}
		}
		c = plain
	}
	writeContact(p.t, name, stream, c)
}

func markAtom(t testing.TB) uint32 {
	t.Helper()
	return cm.Contact(nil).WithMark()[0].Atom
}

func writeContact(t testing.TB, name string, stream int64, c cm.Contact) {
	t.Helper()
	writeText(t, name+".sst", fmt.Sprintf("#ADIOS2-SST v0\n%#x:%s", stream, c))
}

func writeText(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readContact reads a contact file as a reader would.
func readContact(t testing.TB, name string) (int64, cm.Contact) {
	t.Helper()
	b, err := os.ReadFile(name + ".sst")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(b), "\n")
	id, contact, _ := strings.Cut(line, ":")
	n, err := strconv.ParseInt(id, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cm.ParseContact(contact)
	if err != nil {
		t.Fatal(err)
	}
	return n, c
}

// fakeReader is a fake that is attached to a writer, or on the way there.
type fakeReader struct {
	*fake
	link     carrier.Link
	stream   int64
	response *sstmsg.WriterResponse
}

// dials connects to the writer of a stream.
func dials(t testing.TB, name string) *fakeReader {
	t.Helper()
	return newFake(t).dials(name)
}

func (p *fake) dials(name string) *fakeReader {
	p.t.Helper()
	stream, contact := readContact(p.t, name)
	l, err := p.cm.Dial(p.t.Context(), contact)
	if err != nil {
		p.t.Fatal(err)
	}
	return &fakeReader{fake: p, link: l, stream: stream}
}

// Identities of a fake reader.
const (
	fakeControl = 501
	fakeData    = 502
)

func (r *fakeReader) query() {
	r.t.Helper()
	r.send(r.link, &sstmsg.DPQuery{WriterID: r.stream, Condition: 1})
	if _, m := hear[*sstmsg.DPQueryResponse](r.fake); m.Condition != 1 || m.DataPlane != "evpath" {
		r.t.Fatalf("answer %+v", m)
	}
}

func (r *fakeReader) registration() *sstmsg.ReaderRegister {
	contact := r.cm.ContactFor(r.link).String()
	return &sstmsg.ReaderRegister{
		WriterID: r.stream, Condition: 2,
		CP:     []sstmsg.CPReader{{Contact: contact, ReaderID: fakeControl}},
		Evpath: []sstmsg.EvpathReader{{Contact: contact, ReaderID: fakeData}},
	}
}

func (r *fakeReader) register() {
	r.t.Helper()
	r.send(r.link, r.registration())
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	if r.response.Condition != 2 {
		r.t.Fatalf("response %+v", r.response)
	}
}

// sendRecord sends what was encoded elsewhere.
func (r *fakeReader) sendRecord(f *ffs.Format, parts [][]byte) {
	r.t.Helper()
	if err := r.link.Send(carrier.Record{Format: f, Parts: parts}); err != nil {
		r.t.Fatal(err)
	}
}

// wsr is what the writer calls us.
func (r *fakeReader) wsr() int64 { return r.response.CP[0].WriterID }

func (r *fakeReader) activate() { r.send(r.link, &sstmsg.ReaderActivate{WriterID: r.wsr()}) }

// attaches goes through the whole opening.
func attaches(t testing.TB, name string) *fakeReader {
	t.Helper()
	r := dials(t, name)
	r.query()
	r.register()
	r.activate()
	return r
}

func (r *fakeReader) step() *sstmsg.TimestepMetadata {
	r.t.Helper()
	_, m := hear[*sstmsg.TimestepMetadata](r.fake)
	return m
}

func (r *fakeReader) release(n int64) {
	r.send(r.link, &sstmsg.ReleaseTimestep{WriterID: r.wsr(), Step: n})
}

// dropped waits until the other side has dropped the link.
func (p *fake) dropped() {
	p.t.Helper()
	next(p.t, "end of the link", p.lost)
}

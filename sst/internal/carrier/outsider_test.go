package carrier

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// outsider is a peer that speaks units, to send what no carrier would. Without deaf it takes what comes when it sends.
type outsider struct {
	*site
	t      testing.TB
	to     fabric.Peer
	link   uint64
	seq    uint32
	deaf   bool
	got    chan unit // since the last hello
	buffer []byte
	posted bool
}

func outside(t testing.TB, p provider.Provider) *outsider {
	return &outsider{site: place(t, p, fabric.DomainConfig{}), t: t, link: 77, got: make(chan unit, 1<<16), buffer: make([]byte, maxUnit)}
}

// raw sends bytes.
func (o *outsider) raw(b []byte) {
	o.t.Helper()
	for {
		err := o.end.Send(fabric.Op{Local: fabric.Bytes(b), Peer: o.to, Context: 1})
		if err == nil {
			break
		}
		if !isAgain(err) {
			return // we have been cut
		}
		o.wait()
	}
	if !o.deaf {
		o.take()
	}
}

func isAgain(err error) bool { return errors.Is(err, fabric.ErrAgain) }

// send sends a unit of the side that was dialled, or of the other if it is us.
func (o *outsider) send(u unit) {
	o.t.Helper()
	o.raw(u.Append(nil))
}

// next numbers a unit of our link and sends it.
func (o *outsider) next(u unit) {
	o.t.Helper()
	u.dialler, u.link, u.seq = true, o.link, o.seq
	o.seq++
	o.send(u)
}

// join dials a carrier, as a carrier does.
func (o *outsider) join(s *site) {
	o.t.Helper()
	var err error
	if o.to, err = o.domain.Insert(s.address()); err != nil {
		o.t.Fatal(err)
	}
	o.next(unit{kind: unitHello, version: unitVersion})
	o.await(unitWelcome)
}

func (o *outsider) push(f *ffs.Format) {
	o.t.Helper()
	id := f.ID()
	b := append(id[:], f.Body()...)
	o.next(unit{kind: unitFormat, total: uint64(len(b)), data: b})
}

func (o *outsider) record(f *ffs.Format, n, size int) {
	o.t.Helper()
	b := bytesOf(record(f, n, size))
	o.next(unit{kind: unitRecord, total: uint64(len(b)), data: b})
}

// take takes all that has come.
func (o *outsider) take() {
	for o.took() {
	}
}

// took takes one completion, if there is one, and reports whether there was.
func (o *outsider) took() bool {
	if !o.posted {
		o.posted = o.end.Recv(fabric.Op{Local: fabric.Bytes(o.buffer), Context: 2}) == nil
	}
	var c [1]fabric.Completion
	n, err := o.queue.Read(c[:])
	if err != nil || n == 0 {
		return false
	}
	o.completed(&c[0])
	return true
}

func (o *outsider) completed(c *fabric.Completion) {
	if c.Kind != fabric.RecvDone {
		return
	}
	o.posted = false
	if c.Err != nil {
		return
	}
	o.to = c.Source
	if u, err := parseUnit(append([]byte(nil), o.buffer[:c.Len]...)); err != nil {
		o.t.Error(err)
	} else {
		o.got <- u
	}
}

// wait sleeps until there is a completion.
func (o *outsider) wait() {
	if !o.posted && !o.deaf {
		o.posted = o.end.Recv(fabric.Op{Local: fabric.Bytes(o.buffer), Context: 2}) == nil
	}
	var c [1]fabric.Completion
	if n, _ := o.queue.Wait(o.t.Context(), c[:]); n > 0 {
		o.completed(&c[0])
	}
}

// takeUntil takes what comes until ok.
func (o *outsider) takeUntil(ok func() bool) {
	for !ok() {
		o.wait()
	}
}

// await waits for a unit of a kind.
func (o *outsider) await(kind unitKind) unit {
	o.t.Helper()
	for {
		for len(o.got) == 0 {
			o.wait()
		}
		if u := <-o.got; u.kind == kind {
			return u
		}
	}
}

// hello waits for that of a carrier.
func (o *outsider) hello() unit { return o.await(unitHello) }

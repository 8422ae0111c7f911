package sst

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file is the writer's side towards its readers: messages in, and the
// actions of the machine out. Everything here runs on the goroutine of some
// link, or in a call of the application, with w.mu held; nothing blocks.

var errRange = errors.New("read outside the data block")

// query answers DPQuery at once.
func (w *Writer) query(l carrier.Link, m *sstmsg.DPQuery) {
	w.session.peerReads(l, m.Weft != 0)
	w.session.post(l, &sstmsg.DPQueryResponse{Condition: m.Condition, DataPlane: planeEvpath}, sstmsg.Options{}, nil)
}

// register accepts a reader.
func (w *Writer) register(l carrier.Link, m *sstmsg.ReaderRegister) {
	if m.Evpath == nil || len(m.Evpath) != len(m.CP) {
		l.Abort(fmt.Errorf("%w: ReaderRegister with %d control and %d evpath contacts", ErrProtocol, len(m.CP), len(m.Evpath)))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		w.session.turnAway(l, m)
		return
	}
	w.nextKey++
	key := w.nextKey
	r := &attached{link: l, options: w.optionsFor(l), msg: m}
	control := w.session.issue(w.cfg.Ranks, route{writer: w, key: key})
	data := w.session.issue(w.cfg.Ranks, route{writer: w, key: key, data: true})
	r.ids = append(append(r.ids, control...), data...)
	w.readers[key] = r
	w.session.use(l)
	contacts := make([]string, w.cfg.Ranks)
	for i := range contacts {
		contacts[i] = w.session.cm.ContactFor(l).String()
	}
	w.handle(cp.Register{Reader: key, Msg: m, Contacts: contacts, Control: control, Data: data})
}

// optionsFor chooses the message variants that the reader on a link takes.
func (w *Writer) optionsFor(l carrier.Link) sstmsg.Options {
	w.session.mu.Lock()
	weft := w.session.linkUse(l).weft
	w.session.mu.Unlock()
	if weft {
		return sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: true}
	}
	switch w.cfg.Params.ADIOS2Release {
	case "2.10":
		return sstmsg.Options{Release: sstmsg.Release210}
	case "2.12":
		return sstmsg.Options{Release: sstmsg.Release212}
	case "main":
		return sstmsg.Options{Release: sstmsg.ReleaseMain}
	}
	if l.Info().Release == carrier.Release210 {
		return sstmsg.Options{Release: sstmsg.Release210}
	}
	return sstmsg.Options{Release: sstmsg.Release212}
}

// fromReader takes a message of a reader that is registered.
func (w *Writer) fromReader(key readerKey, m sstmsg.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handle(cp.FromReader{Reader: key, Msg: m})
}

// linkLost drops the readers whose control link is gone.
func (w *Writer) linkLost(l carrier.Link, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, r := range w.readers {
		if r.link == l {
			w.handle(cp.ReaderLost{Reader: key, Err: err})
		}
	}
}

// serve answers a read request on the link it came on. There is no error reply
// in the protocol: a request that cannot be answered drops the connection.
func (w *Writer) serve(l carrier.Link, r route, m *sstmsg.ReadRequest) {
	w.mu.Lock()
	if w.readers[r.key] == nil { // dropped since the request was routed
		w.mu.Unlock()
		if err := w.session.refuse(l, m); err != nil {
			l.Abort(err)
		}
		return
	}
	d := w.steps[m.Step]
	held := d != nil
	var data [][]byte
	err := fmt.Errorf("step %d is not held: %w", m.Step, errRange)
	if held {
		data, err = d.stores[r.rank].Slices(uint64(m.Offset), uint64(m.Length))
	}
	if err == nil {
		d.use()
	}
	w.mu.Unlock()
	if err != nil {
		l.Abort(fmt.Errorf("%w: read of bytes %d+%d of step %d, rank %d: %w", ErrProtocol, m.Offset, m.Length, m.Step, r.rank, err))
		return
	}
	reply := &sstmsg.ReadReply{Step: m.Step, ReaderID: m.ReaderID, Data: data, Condition: m.Condition}
	w.session.post(l, reply, sstmsg.Options{}, d.release)
}

// handle feeds the machine and carries its actions out. The caller holds w.mu.
func (w *Writer) handle(e cp.WriterEvent) {
	for _, a := range w.machine.Handle(e) {
		switch a := a.(type) {
		case cp.SendToReader:
			if r := w.readers[a.Reader]; r != nil {
				w.session.post(r.link, a.Msg, r.options, nil)
			}
		case cp.PushStep:
			w.push(a.Reader, a.Step)
		case cp.FreeStep:
			if d := w.steps[a.Step]; d != nil {
				delete(w.steps, a.Step)
				d.release()
			}
		case cp.DropReader:
			w.dropReader(a.Reader, a.Err)
		case cp.Changed:
			w.changed.notify()
		}
	}
}

// dropReader forgets a reader, and drops its link if it failed.
func (w *Writer) dropReader(key readerKey, err error) {
	r := w.readers[key]
	if r == nil {
		return
	}
	delete(w.readers, key)
	r.gone = true
	w.session.retire(r.ids...)
	w.session.unuse(r.link)
	for _, l := range r.links {
		w.session.unuse(l)
	}
	if err != nil && w.failure == nil {
		w.session.background(func(context.Context) { // the logger may be slow, or ask us something
			w.session.log.Warn("a reader failed; the stream goes on", "stream", w.path, "reader", r.link.Info().Remote.String(), "error", err)
		})
	}
}

package fabrictest

import (
	"github.com/weft-fabric/weft/fabric/provider"
)

// flagRow says which completions an operation makes at both sides. Every provider makes the same.
type flagRow struct {
	name  string
	needs provider.Caps
	op    opSpec                // peer, memory and context are filled in; contexts are 1 here and 2 there
	recv  *opSpec               // what the target posts before
	here  *provider.Completion  // Source is filled in, as the peer; nil means none
	there []provider.Completion // at the target; Source is filled in, as the initiator
}

const flagBytes = 48

// flagTable is the table of completions (F44). Each row but those without a receive is run with the receive before and
// after the message.
func flagTable() []flagRow {
	const n, data, tag = flagBytes, 0x1122334455667788, 0x7a
	recv := &opSpec{Kind: provider.RecvDone}
	trecv := &opSpec{Kind: provider.TRecvDone, Tag: tag}
	here := func(k provider.Kind) *provider.Completion { return &provider.Completion{Context: 1, Kind: k, Len: n} }
	there := func(k provider.Kind, f provider.CompletionFlags, t, d uint64) []provider.Completion {
		return []provider.Completion{{Context: 2, Kind: k, Flags: f, Len: n, Tag: t, Data: d}}
	}
	op := func(k provider.Kind, f provider.Flags) opSpec {
		o := opSpec{Kind: k, Flags: f, Context: 1}
		if f.Has(provider.RemoteData) {
			o.Data = data
		}
		if k == provider.TSendDone {
			o.Tag = tag
		}
		return o
	}
	var rows []flagRow
	for _, f := range []provider.Flags{0, provider.Inject, provider.DeliveryComplete, provider.Quiet, provider.More, provider.Fence, provider.Inject | provider.Quiet, provider.DeliveryComplete | provider.Inject} {
		send, tsend, write := here(provider.SendDone), here(provider.TSendDone), here(provider.WriteDone)
		if f.Has(provider.Quiet) {
			send, tsend, write = nil, nil, nil
		}
		const d = provider.RemoteData
		rows = append(rows,
			flagRow{name: "send", op: op(provider.SendDone, f), recv: recv, here: send, there: there(provider.RecvDone, 0, 0, 0)},
			flagRow{name: "send", needs: provider.RemoteCQData, op: op(provider.SendDone, f|d), recv: recv, here: send, there: there(provider.RecvDone, provider.HasData, 0, data)},
			flagRow{name: "send-tagged", needs: provider.Tagged, op: op(provider.TSendDone, f), recv: trecv, here: tsend, there: there(provider.TRecvDone, 0, tag, 0)},
			flagRow{name: "send-tagged", needs: provider.Tagged | provider.RemoteCQData, op: op(provider.TSendDone, f|d), recv: trecv, here: tsend, there: there(provider.TRecvDone, provider.HasData, tag, data)},
			flagRow{name: "write", needs: provider.RMA, op: op(provider.WriteDone, f), here: write},
			flagRow{name: "write", needs: provider.RMA | provider.RemoteCQData, op: op(provider.WriteDone, f|d), here: write, there: []provider.Completion{{Kind: provider.RemoteWrite, Flags: provider.HasData, Len: n, Data: data}}},
		)
	}
	for _, f := range []provider.Flags{0, provider.Quiet, provider.More, provider.Fence} {
		read := here(provider.ReadDone)
		if f.Has(provider.Quiet) {
			read = nil
		}
		rows = append(rows, flagRow{name: "read", needs: provider.RMA, op: op(provider.ReadDone, f), here: read})
	}
	for _, f := range []provider.Flags{0, provider.Inject, provider.DeliveryComplete, provider.Quiet, provider.More, provider.Fence, provider.Inject | provider.Quiet} {
		atomic := here(provider.AtomicDone)
		if f.Has(provider.Quiet) {
			atomic = nil
		}
		o := op(provider.AtomicDone, f)
		o.Code, o.Type = provider.AtomicSum, provider.Uint64
		rows = append(rows, flagRow{name: "atomic", needs: provider.Atomics, op: o, here: atomic})
	}
	return rows
}

// testFlags runs the table, towards every kind of memory.
func testFlags(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	for _, row := range flagTable() {
		if !e.has(row.needs) {
			continue
		}
		if row.recv == nil {
			for _, kind := range e.remoteKinds() {
				e.flagRow(a, b, to, from, row, kind, false)
			}
			continue
		}
		e.flagRow(a, b, to, from, row, "", false)
		e.flagRow(a, b, to, from, row, "", true)
	}
}

// flagRow runs one row; one with More is posted twice, the second time without it, so that both are published.
func (e *env) flagRow(a, b *side, to, from provider.Peer, row flagRow, kind string, late bool) {
	e.Helper()
	op := row.op
	op.Peer = to
	op.Segs = []seg{a.heap(flagBytes, 1).all()}
	if kind != "" {
		m := b.mem(kind, flagBytes, readWrite)
		op.Key, op.Offset = m.key, m.at(0)
	}
	ops := []opSpec{op}
	if op.Flags.Has(provider.More) {
		op.Flags &^= provider.More
		ops = append(ops, op)
	}
	receive := func() {
		if row.recv == nil {
			return
		}
		for range ops {
			r := *row.recv
			r.Segs, r.Context = []seg{b.heap(flagBytes, 0).all()}, 2
			b.post(r)
		}
	}
	if !late {
		receive()
	}
	for _, op := range ops {
		a.post(op)
	}
	if late {
		receive()
	}
	what := row.name + " with " + row.op.Flags.String()
	for range ops {
		if row.here != nil {
			want := *row.here
			want.Source = to
			e.same(what+", here", a.take(1)[0], want)
		}
		for _, want := range row.there {
			want.Source = from
			e.same(what+", at the target", b.take(1)[0], want)
		}
	}
	e.nothingMore(a, b, to, what)
}

// nothingMore fails the test if the row made further completions. What an earlier operation makes is there before a message
// that follows it has been answered.
func (e *env) nothingMore(a, b *side, to provider.Peer, what string) {
	e.Helper()
	in, out := b.heap(1, 0), a.heap(1, 0)
	b.post(recvOp(1000, in.all()))
	a.post(sendOp(to, 1001, out.all()).with(provider.DeliveryComplete|provider.Fence, 0))
	if c := b.take(1)[0]; c.Context != 1000 || c.Err != nil {
		e.Fatalf("%s: the target got one more completion: %s", what, show(c))
	}
	if c := a.take(1)[0]; c.Context != 1001 || c.Err != nil {
		e.Fatalf("%s: one more completion here: %s", what, show(c))
	}
}

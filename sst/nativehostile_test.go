package sst_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/sst/internal/native"
	"github.com/weft-fabric/weft/step"
)

// TestNativeHostileReader says of its plane what a writer must answer by dropping it.
func TestNativeHostileReader(t *testing.T) {
	plane := func(r *fakeReader, name string) { r.sendWeft(&sstmsg.ReaderPlane{WriterID: r.wsr(), Plane: name}) }
	for name, c := range map[string]struct {
		registers string
		attack    func(r *fakeReader)
	}{
		"of sockets":               {"evpath", func(r *fakeReader) { plane(r, "native") }},
		"of sockets, to sockets":   {"evpath", func(r *fakeReader) { plane(r, "evpath") }},
		"unknown plane":            {"native", func(r *fakeReader) { plane(r, "ucx") }},
		"no plane":                 {"native", func(r *fakeReader) { plane(r, "") }},
		"long name":                {"native", func(r *fakeReader) { plane(r, strings.Repeat("native,", 10_000)) }},
		"twice":                    {"native", func(r *fakeReader) { plane(r, "native"); plane(r, "native") }},
		"two planes":               {"native", func(r *fakeReader) { plane(r, "mixed"); plane(r, "evpath") }},
		"after it was let in":      {"native", func(r *fakeReader) { plane(r, "mixed"); r.activate(); plane(r, "mixed") }},
		"without having told any":  {"native", func(r *fakeReader) { r.activate(); r.release(1000); plane(r, "ucx") }},
		"by a guess":               {"native", func(r *fakeReader) { r.sendWeft(&sstmsg.ReaderPlane{WriterID: 1, Plane: "native"}) }},
		"by the number of streams": {"native", func(r *fakeReader) { r.sendWeft(&sstmsg.ReaderPlane{WriterID: r.stream, Plane: "native"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			r := dials(t, v.name)
			r.sendWeft(&sstmsg.DPQuery{WriterID: r.stream, Condition: 1, Weft: 1, Planes: c.registers})
			if _, m := hear[*sstmsg.DPQueryResponse](r.fake); m.DataPlane != c.registers {
				t.Fatalf("answer %+v", m)
			}
			m := r.registration()
			if c.registers != "evpath" {
				m.Plane = c.registers
			}
			r.sendWeft(m)
			_, r.response = hear[*sstmsg.WriterResponse](r.fake)
			if (len(r.response.Native) == 1) != (c.registers == "native") {
				t.Errorf("native contacts: %+v", r.response.Native)
			}
			c.attack(r)
			v.step(t)
			testutil.Eventually(t, "it is dropped", func() bool { return len(v.x.w.Info().Readers) == 1 || strings.HasPrefix(name, "by ") })
			r.link.Close()
			v.unharmed(t)
		})
	}
}

// sendFull sends a message with what only Weft says.
func (p *fake) sendFull(l carrier.Link, m sstmsg.Message) {
	p.t.Helper()
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Weft: true, Release: sstmsg.ReleaseMain})
	if err == nil {
		err = l.Send(carrier.Record{Format: f, Parts: parts})
	}
	if err != nil {
		p.t.Errorf("the fake cannot send a %s: %v", sstmsg.Name(m), err)
	}
}

// shares answers a reader of the native plane, with these contacts of its ranks; change may
// spoil the answer.
func (p *hostileWriter) shares(contacts []string, change func(*sstmsg.WriterResponse)) (reply func(sstmsg.Message)) {
	p.t.Helper()
	l, q := hear[*sstmsg.DPQuery](p.fake)
	p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: "native"})
	l, reg := hear[*sstmsg.ReaderRegister](p.fake)
	if q.Planes != "native,evpath" || reg.Plane != "native" {
		p.t.Errorf("the reader asks for %q, and registers for %q", q.Planes, reg.Plane)
	}
	p.reg = reg
	m := p.response(reg)
	for rank, c := range contacts {
		if rank > 0 {
			m.CP, m.Evpath = append(m.CP, m.CP[0]), append(m.Evpath, m.Evpath[0])
		}
		m.Native = append(m.Native, sstmsg.NativeWriter{Contact: c})
	}
	if change != nil {
		change(m)
	}
	p.sendFull(l, m)
	return func(m sstmsg.Message) { p.t.Helper(); p.sendFull(l, m) }
}

// lets waits until a reader has come in by a plane.
func (p *hostileWriter) lets(plane string) {
	p.t.Helper()
	if _, m := hear[*sstmsg.ReaderPlane](p.fake); m.Plane != plane {
		p.t.Errorf("the reader reads by %q, want %q", m.Plane, plane)
	}
	hear[*sstmsg.ReaderActivate](p.fake)
}

// arena is shared memory of this process, as a writer has it: its contact, and n bytes.
func arena(t *testing.T, n int) (contact string, m *native.Memory) {
	t.Helper()
	f, err := native.Open(t.Context(), native.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if m, err = f.Alloc(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return f.Contact(), m
}

// TestNativeHostileContacts: whatever a writer says of where its memory is, the reader comes
// in, by sockets.
func TestNativeHostileContacts(t *testing.T) {
	good, _ := arena(t, 64)
	word := strings.Fields(good)
	other := strings.Repeat("0", len(word[3]))
	for name, contacts := range map[string][]string{
		"none":          {""},
		"garbage":       {"\xff garbage"},
		"long":          {strings.Repeat("1 ", 1<<20)},
		"version":       {"2 " + strings.Join(word[1:], " ")},
		"nobody":        {"1 shm://nobody " + word[2] + " " + word[3]},
		"other nonce":   {strings.Join([]string{"1", word[1], word[2], other}, " ")},
		"other key":     {strings.Join([]string{"1", word[1], "ffffffffffffffff", word[3]}, " ")},
		"other node":    {"1 shm://x?boot=0123456789abcdef0123456789abcdef&inc=7 " + word[2] + " " + word[3]},
		"of all kinds":  {"", "x", "1 shm://nobody " + word[2] + " " + word[3]},
		"other network": {"1 tcp://127.0.0.1:1 " + word[2] + " " + word[3]},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWriter(t, true)
			open := p.opens(t, sst.ReaderConfig{})
			p.shares(contacts, nil)
			p.lets("evpath")
			r := next(t, "Open", open).reader(t)
			if plane := r.Info().Plane; plane != "evpath" {
				t.Errorf("the plane is %q", plane)
			}
		})
	}
	t.Run("no list", func(t *testing.T) {
		p := newWriter(t, true)
		open := p.opens(t, sst.ReaderConfig{})
		p.shares([]string{good}, func(m *sstmsg.WriterResponse) { m.Native = nil })
		wants(t, "Open", next(t, "Open", open).err, sst.ErrProtocol)
	})
}

// TestNativeManyContacts: the time that a reader spends on contacts is bounded, however many
// there are.
func TestNativeManyContacts(t *testing.T) {
	good, _ := arena(t, 64)
	word := strings.Fields(good)
	contacts := make([]string, testutil.Count(t, 20_000, 1_000_000))
	for i := range contacts {
		if contacts[i] = fmt.Sprint("garbage ", i); i%2 == 0 {
			contacts[i] = fmt.Sprintf("1 shm://nobody%d %s %s", i, word[2], word[3])
		}
	}
	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{})
	p.shares(contacts, nil)
	p.lets("evpath")
	next(t, "Open", open).reader(t)
}

// TestNativeHostileExtents: whatever a writer says of where a step lies, to read it is an
// error, and the stream goes on.
func TestNativeHostileExtents(t *testing.T) {
	const size = 800 // of the block
	contact, m := arena(t, size)
	key, values := m.Key(), func(n int64) {
		for i, b := 0, m.Bytes(); i < size; i++ {
			b[i] = byte((n<<20 + int64(i/8)) >> (i % 8 * 8))
		}
	}
	list := func(x ...dp.Extent) []byte { return dp.AppendExtents(nil, x) }
	bytewise := make([]dp.Extent, 1_000_000)
	for i := range bytewise {
		bytewise[i] = dp.Extent{Offset: uint64(i), Length: 1, Key: fabric.Key(i), At: 1 << 60}
	}
	for name, c := range map[string]struct {
		extents []byte
		good    bool
	}{
		"right":           {list(dp.Extent{Length: size, Key: key}), true},
		"in two":          {list(dp.Extent{Length: 8, Key: key}, dp.Extent{Offset: 8, Length: size - 8, Key: key, At: 8}), true},
		"longer than all": {list(dp.Extent{Length: 1 << 40, Key: key}), true}, // what is asked for is there
		"not entries":     {make([]byte, 31), false},
		"no length":       {list(dp.Extent{Key: key}), false},
		"overlap":         {list(dp.Extent{Length: 9, Key: key}, dp.Extent{Offset: 8, Length: size, Key: key}), false},
		"fall":            {list(dp.Extent{Offset: 8, Length: size, Key: key}, dp.Extent{Length: 8, Key: key}), false},
		"wrap":            {list(dp.Extent{Length: 1<<64 - 1, Key: key}), false},
		"wrap at":         {list(dp.Extent{Length: size, Key: key, At: 1<<64 - 1}), false},
		"beyond":          {list(dp.Extent{Length: size, Key: key, At: 8}), false},
		"far beyond":      {list(dp.Extent{Length: size, Key: key, At: 1 << 50}), false},
		"no memory":       {list(dp.Extent{Length: size, Key: 1 << 63}), false},
		"a million":       {list(bytewise...), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWriter(t, true)
			open := p.opens(t, sst.ReaderConfig{})
			reply := p.shares([]string{contact}, nil)
			p.lets("native")
			r := next(t, "Open", open).reader(t)
			bad := p.aStep(t)
			bad.Native = []sstmsg.Block{{Data: sstmsg.ByteBlob(c.extents)}}
			values(0)
			reply(bad)
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := verify(bounded(t), st); (err == nil) != c.good {
					t.Errorf("Get: %v", err)
				}
				if err := glance(bounded(t), st); (err == nil) != (c.good && name != "in two") {
					t.Errorf("View: %v", err)
				}
			}
			st.End()
			after := *bad
			after.Step, after.Formats, after.Native = 1, nil, []sstmsg.Block{{Data: sstmsg.ByteBlob(list(dp.Extent{Length: size, Key: key}))}}
			values(1)
			reply(&after)
			takeStep(t, r)
		})
	}
}

// glance views the values of a step.
func glance(ctx context.Context, st *step.Step) error {
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		return err
	}
	view, err := v.View(ctx, step.All)
	if err == nil {
		view.Release()
	}
	return err
}

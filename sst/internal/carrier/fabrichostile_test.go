package carrier

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/prov/loop"
)

// victim is a carrier that a well-behaved peer uses as well.
func victim(t *testing.T, c FabricConfig) (*site, *outsider, func()) {
	t.Helper()
	p := loop.New()
	a, b := place(t, p, fabric.DomainConfig{}).settle(t, c), place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{})
	l := b.reach(t, a)
	return a, outside(t, p), func() {
		t.Helper()
		drain(a.got)
		if err := l.Send(record(testFormat(t, "Good"), 4711, 100_000)); err != nil {
			t.Fatal(err)
		}
		for number(next(t, "record of a good peer", a.got).data) != 4711 { // others came between
		}
	}
}

// TestFabricHostile: what breaks the protocol ends its link, or the peer, and harms nobody else.
func TestFabricHostile(t *testing.T) {
	id := func(o *outsider, n int) []byte {
		f := testFormat(o.t, "F").ID()
		return append(f[:], make([]byte, n)...)
	}
	for name, c := range map[string]struct {
		do   func(o *outsider, f *ffs.Format)
		want error
	}{
		"unknown format":  {func(o *outsider, f *ffs.Format) { o.record(f, 1, 1) }, ErrUnknownFormat},
		"rest of nothing": {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitRest, data: []byte{1}}) }, ErrProtocol},
		"second hello": {func(o *outsider, _ *ffs.Format) {
			o.send(unit{kind: unitHello, dialler: true, link: o.link, version: 1})
		}, ErrProtocol},
		"welcome":           {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitWelcome, version: 1}) }, ErrProtocol},
		"number again":      {func(o *outsider, f *ffs.Format) { o.push(f); o.seq--; o.push(f) }, ErrProtocol},
		"too long a record": {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitRecord, total: 1<<20 + 1, data: id(o, 0)}) }, ErrLimit},
		"too long a format": {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitFormat, total: 5 << 20, data: id(o, 0)}) }, ErrLimit},
		"bad format":        {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitFormat, total: 20, data: id(o, 8)}) }, ffs.ErrUnsupported},
		"record in a record": {func(o *outsider, _ *ffs.Format) {
			o.next(unit{kind: unitRecord, total: 1000, data: id(o, 0)})
			o.next(unit{kind: unitRecord, total: 1000, data: id(o, 0)})
		}, ErrProtocol},
		"more than there is": {func(o *outsider, _ *ffs.Format) {
			o.next(unit{kind: unitRecord, total: 100, data: id(o, 0)})
			o.next(unit{kind: unitRest, data: make([]byte, 89)})
		}, ErrProtocol},
		"a gap without end": {func(o *outsider, _ *ffs.Format) {
			o.seq++
			for range 2 * maxHeld / keepCost {
				o.next(unit{kind: unitRest, data: []byte{1}})
			}
		}, ErrLimit},
		"goodbye":       {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitGoodbye}); o.next(unit{kind: unitGoodbye}) }, ErrPeerClosed},
		"end":           {func(o *outsider, _ *ffs.Format) { o.next(unit{kind: unitEnd}); o.next(unit{kind: unitEnd}) }, ErrPeerAborted},
		"no unit":       {func(o *outsider, _ *ffs.Format) { o.raw([]byte("GET / HTTP/1.1")) }, ErrProtocol},
		"too long":      {func(o *outsider, _ *ffs.Format) { o.raw(make([]byte, 300<<10)) }, ErrProtocol},
		"tagged":        {func(o *outsider, _ *ffs.Format) { _ = o.end.SendTagged(fabric.Op{Peer: o.to, Tag: watchTag}) }, ErrProtocol},
		"hello of ours": {func(o *outsider, _ *ffs.Format) { o.send(unit{kind: unitHello, link: 99, version: 1}) }, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, o, good := victim(t, FabricConfig{MaxRecord: 1 << 20})
				o.join(a)
				c.do(o, testFormat(t, "F"))
				if e := next(t, "end", a.lost); !errors.Is(e.err, c.want) {
					t.Errorf("lost: %v", e.err)
				}
				good()
				synctest.Wait()
				nothingIn(t, "end", a.lost)
				o.seq = 0
				o.link++
				o.join(a) // it may come again
			})
		})
	}
}

// TestFabricStrangers: who says no hello is dropped, and does not fill the log.
func TestFabricStrangers(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelWarn)
	a, o, good := victim(t, FabricConfig{Logger: logger})
	rnd := testutil.Rand(t)
	for i := range 300 {
		var err error
		if o.to, err = o.domain.Insert(a.address()); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			o.raw((&unit{kind: unitKind(1 + rnd.IntN(12)), seq: rnd.Uint32(), link: rnd.Uint64()}).Append(nil))
		} else {
			b := make([]byte, rnd.IntN(100))
			for j := range b {
				b[j] = byte(rnd.Uint32())
			}
			o.raw(b)
		}
	}
	good()
	testutil.Eventually(t, "strangers are dropped", func() bool { return len(log.String()) > 0 })
	_ = a.f.Close()
	if n := len(log.String()); n > 20*500 {
		t.Errorf("%d bytes of log", n)
	}
}

// TestFabricManyLinks: a peer gets so many links, and the others are refused.
func TestFabricManyLinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, o, good := victim(t, FabricConfig{})
		o.join(a)
		for i := range maxPerPeer + 10 {
			o.send(unit{kind: unitHello, dialler: true, link: uint64(1000 + i), version: 1})
		}
		for range 11 {
			if u := o.await(unitRefusal); u.code != refusedLimit {
				t.Errorf("%+v", u)
			}
		}
		good()
		o.send(unit{kind: unitHello, dialler: true, link: 1, version: 7})
		if u := o.await(unitRefusal); u.code != refusedVersion || u.version != unitVersion {
			t.Errorf("%+v", u)
		}
	})
}

// TestFabricAllocatesWhatComes: a record that claims to be long costs no more than what has come.
func TestFabricAllocatesWhatComes(t *testing.T) {
	a, o, good := victim(t, FabricConfig{})
	o.join(a)
	f := testFormat(t, "F")
	o.push(f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	id := f.ID()
	for i := range 40 {
		o.link = uint64(100 + i)
		o.seq = 0
		o.join(a)
		o.next(unit{kind: unitRecord, total: 4 << 30, data: id[:]})
	}
	good()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MiB", n>>20)
	}
}

// TestFabricReorders: units are taken in the order of their numbers, in whatever order they come.
func TestFabricReorders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, o, _ := victim(t, FabricConfig{})
		o.join(a)
		f := testFormat(t, "F")
		const n = 200
		var all [][]byte
		id := f.ID()
		add := func(u unit) {
			u.dialler, u.link, u.seq = true, o.link, uint32(len(all)+1)
			all = append(all, u.Append(nil))
		}
		push := append(id[:], f.Body()...)
		add(unit{kind: unitFormat, total: uint64(len(push)), data: push})
		for i := range n {
			b := bytesOf(record(f, i, 100))
			add(unit{kind: unitRecord, total: uint64(len(b)), data: b[:20]})
			add(unit{kind: unitRest, data: b[20:]})
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, b := range all {
			o.raw(b)
		}
		for i := range n {
			if e := next(t, "record", a.got); number(e.data) != i {
				t.Fatalf("number %d at place %d", number(e.data), i)
			}
		}
	})
}

// TestFabricGarbage sends units that are damaged at random.
func TestFabricGarbage(t *testing.T) {
	a, o, good := victim(t, FabricConfig{CloseTimeout: time.Second})
	rnd := testutil.Rand(t)
	f := testFormat(t, "F")
	for i := range testutil.Count(t, 300, 3000) {
		var err error
		if o.to, err = o.domain.Insert(a.address()); err != nil {
			t.Fatal(err)
		}
		o.link, o.seq = uint64(10+i), 1
		id := f.ID()
		all := [][]byte{(&unit{kind: unitHello, dialler: true, link: o.link, version: 1}).Append(nil)}
		push := append(id[:], f.Body()...)
		all = append(all, (&unit{kind: unitFormat, dialler: true, seq: 1, link: o.link, total: uint64(len(push)), data: push}).Append(nil))
		b := bytesOf(record(f, i, 100))
		all = append(all, (&unit{kind: unitRecord, dialler: true, seq: 2, link: o.link, total: uint64(len(b)), data: b}).Append(nil))
		hit := all[rnd.IntN(len(all))]
		hit[rnd.IntN(len(hit))] ^= byte(1 << rnd.IntN(8))
		for _, b := range all {
			o.raw(b)
		}
		o.next(unit{kind: unitGoodbye})
	}
	good()
}

package shm

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// connectedSides are two that have exchanged a message, and progress only when they are told to.
func connectedSides(t *testing.T) (a, b *side, ab provider.Peer) {
	t.Helper()
	a, b, ab, _ = twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	a.must(a.ep.Send(mk(make([]byte, 8), ab, 1)))
	progress(t, "connected", func() bool { return a.peerState(ab) == "connected" && len(b.d.pairs) == 1 }, a, b)
	a.drainSome()
	return a, b, ab
}

// What a peer leaves in its control lane when it goes may be garbage.
func TestGarbageLeftBehind(t *testing.T) {
	a, b, ab := connectedSides(t)
	_ = a.ep.Send(mk(make([]byte, 100000), ab, 9))
	b.d.core.Lock()
	p := b.d.pairs[0]
	r, err := p.control.Reserve(wordLen)
	if err != nil {
		t.Fatal(err)
	}
	copy(r, "\xff\xff\xff\xff\xff\xff\xff\xff")
	p.control.Commit()
	p.control.Publish()
	_ = p.sock.Shutdown()
	b.d.core.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.d.core.Lock()
		a.d.poll() // so that it hears of the end first
		a.d.core.Progress()
		a.d.core.Unlock()
	}()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		panic("it reads the garbage for ever, and holds the lock") // nothing can be closed any more
	}
	if c := a.wait(b); c.Context != 9 || !errors.Is(c.Err, provider.ErrPeerGone) || !errors.Is(c.Err, provider.ErrProtocol) {
		t.Errorf("%+v", c)
	}
}

// What peers make us map has bounds; and whoever has most, there is room for the next.
func TestForeignQuota(t *testing.T) {
	d := &domain{}
	for i := range 8 {
		p := &pair{d: d}
		for n := 0; p.afford(2, 1<<40) == nil; n++ {
			p.foreign.add(2, 1<<40)
			d.foreign.add(2, 1<<40)
		}
		if got := p.foreign.bytes; i < 4 && got == 0 || d.foreign.bytes > maxForeignBytes {
			t.Errorf("peer %d has %d bytes, all have %d", i, got, d.foreign.bytes)
		}
	}
	d = &domain{}
	for i := range 12 {
		p := &pair{d: d}
		for p.afford(1, pageSize) == nil {
			p.foreign.add(1, pageSize)
			d.foreign.add(1, pageSize)
		}
		if p.foreign.maps == 0 || d.foreign.maps > maxForeignMaps {
			t.Errorf("peer %d has %d mappings, all have %d", i, p.foreign.maps, d.foreign.maps)
		}
	}
	if (&pair{d: &domain{}}).afford(1, ^uint64(0)) == nil {
		t.Error("a segment of all addresses")
	}
	// What is unmapped counts no more.
	a, b, _ := connectedSides(t)
	for range 5 {
		m := b.alloc(3<<20, provider.PeerRead)
		progress(t, "announced", func() bool { return a.d.foreign.maps > 0 && a.d.foreign == a.d.pairs[0].foreign }, a, b)
		_ = m.Close()
	}
	if err := b.d.Close(); err != nil {
		t.Fatal(err)
	}
	progress(t, "gone", func() bool { return len(a.d.pairs) == 0 && len(a.d.dead) == 0 || len(a.d.eps[0].strangers) > 0 }, a)
	a.eats()
	progress(t, "nothing is mapped", func() bool { return a.d.foreign == foreign{} }, a)
}

// Users share no bells: the other holder of one could have a ring, or the taking of one, block for ever.
func TestNoBellForOthers(t *testing.T) {
	a, _, _ := connectedSides(t)
	p := a.d.pairs[0]
	for _, other := range []bool{false, true} {
		ends := [2]sys.Socket{}
		var err error
		if ends[0], ends[1], err = sys.SocketPair(sys.SeqPacket); err != nil {
			t.Fatal(err)
		}
		again, err := newFile("lanes", lanesSize, false, a.d.features) // what it had was closed when it was up
		a.must(err)
		_ = again.m.Close()
		_ = p.mine.fd.Close()
		p.mine.fd = again.fd
		was := p.uid
		if other {
			p.uid++
		}
		a.must(p.introduce(kindWelcome, ends[0]))
		p.uid = was
		b := make([]byte, maxMessage)
		n, fds, err := ends[1].Recv(b, 8)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parse(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		h := m.(*hello)
		if bell := h.features&hasBell != 0; bell == other && a.d.features.Has(sys.EventFD) || len(fds) != h.descriptors() {
			t.Errorf("another user %v: features %d, %d descriptors", other, h.features, len(fds))
		}
		sys.CloseAll(fds)
		_, _ = ends[0].Close(), ends[1].Close()
	}
}

// A peer that nobody can know of is forgotten when it has gone; one that was inserted, or heard of, is not.
func TestUnknownPeersAreForgotten(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	for i := range 20 {
		b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
		to := b.insert(a.ep.Address())
		v, err := b.d.View(t.Context(), to, 77, 0, 1) // connects, and says nothing
		if v != nil || !errors.Is(err, provider.ErrKey) {
			t.Fatalf("%v, %v", v, err)
		}
		testutil.Eventually(t, "connected", func() bool { return a.d.Stats().Peers == 1 })
		var known provider.Peer
		switch i % 4 {
		case 1:
			known = a.insert(b.ep.Address())
		case 2:
			a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
			b.must(b.ep.Send(mk(make([]byte, 8), to, 1)))
			known = a.wait().Source
		case 3:
			b.must(b.ep.Send(mk(make([]byte, 8), to, 1))) // waits for a receive that comes later
			testutil.Eventually(t, "arrived", func() bool { return a.unexpected(a.d.Peers()[0].Peer) > 0 })
		}
		b.must(b.d.Close())
		testutil.Eventually(t, "gone", func() bool {
			a.d.core.Lock()
			defer a.d.core.Unlock()
			return len(a.d.eps[0].pairs) == 0 && len(a.d.dead) == 0
		})
		if i%4 == 3 {
			a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
			known = a.wait().Source
		}
		left := a.d.Peers()
		if known == 0 {
			if len(left) > 0 {
				t.Fatalf("round %d: still known: %+v", i, left)
			}
			continue
		}
		if len(left) != 1 || left[0].Peer != known || left[0].State != "gone" {
			t.Fatalf("round %d: %d was heard of, known are %+v", i, known, left)
		}
		a.must(a.d.Remove(known))
	}
}

// Who answers a call with garbage, or with what is not sealed, or not at all, fails that call, and costs nothing.
func TestBadWelcomes(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	exchange(t, a, b)
	other, err := newLanes(b.d.features)
	a.must(err)
	defer other.close()
	home, lanes := b.d.home.fd, other.fd
	wrong, err := wrongDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	defer sys.CloseAll(wrong)
	good := hello{kind: kindWelcome, inc: 5, boot: a.d.boot, layout: ourLayout, uid: a.d.uid, net: a.d.net, from: t.Name(), to: "x"}
	with := func(change func(*hello)) []byte {
		h := good
		change(&h)
		return h.Append(nil)
	}
	type answer struct {
		wire []byte
		fds  []*sys.FD
	}
	both := []*sys.FD{home, lanes}
	answers := map[string]answer{
		"nothing": {}, "garbage": {[]byte("HTTP/1.1 200 OK"), nil}, "half": {good.Append(nil)[:60], both}, "no descriptors": {good.Append(nil), nil},
		"too many": {good.Append(nil), []*sys.FD{home, lanes, home}}, "swapped": {good.Append(nil), []*sys.FD{lanes, home}},
		"a bell that is none": {with(func(h *hello) { h.features = hasBell }), []*sys.FD{home, lanes, lanes}},
		"another layout":      {with(func(h *hello) { h.layout.home++ }), both}, "another boot": {with(func(h *hello) { h.boot[3]++ }), both},
		"another name": {with(func(h *hello) { h.from = "y" }), both}, "a hello": {with(func(h *hello) { h.kind = kindHello }), both},
		"segments": {announcement{{index: 1, size: pageSize}}.Append(nil), []*sys.FD{home}}, "a drop": {drop{1}.Append(nil), nil},
		"a ring": {seal(appendHead(nil, kindBell), 0), nil}, "a refusal": {refusal{code: refuseUser, text: "no"}.Append(nil), nil},
		"a segment that is none": {with(func(h *hello) { h.segments = []segmentInfo{{index: 0, size: pageSize}} }), []*sys.FD{home, lanes, wrong[0]}},
		"a flood of descriptors": {good.Append(nil), append(wrong, wrong...)},
	}
	for i, fd := range wrong {
		answers["home of kind "+string(rune('a'+i))] = answer{good.Append(nil), []*sys.FD{fd, lanes}}
		answers["lanes of kind "+string(rune('a'+i))] = answer{good.Append(nil), []*sys.FD{home, fd}}
	}
	l, err := sys.ListenUnix(socketName(a.d.uid, t.Name()), sys.SeqPacket, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := takeStock(t)
	for what, w := range answers {
		a.must(a.ep.Send(mk(make([]byte, 8), a.insert(provider.Address("shm://"+t.Name())), 3)))
		sock := accepted(t, l)
		if w.wire != nil {
			if _, err := sock.Send(w.wire, w.fds...); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = sock.Close()
		}
		// Gone it is where a welcome has said who it is.
		if c := a.wait(); c.Context != 3 || !errors.Is(c.Err, provider.ErrUnreachable) && !errors.Is(c.Err, provider.ErrPeerGone) {
			t.Errorf("%s: %+v", what, c)
		}
		_ = sock.Close()
	}
	exchange(t, a, b)
	testutil.Eventually(t, "all descriptors and mappings are closed", func() bool {
		now := takeStock(t)
		return now.files <= before.files && now.maps <= before.maps
	})
}

// accepted takes a connection and its hello.
func accepted(t *testing.T, l sys.Socket) (sock sys.Socket) {
	t.Helper()
	testutil.Eventually(t, "it calls", func() (ok bool) {
		var err error
		sock, err = l.Accept()
		return err == nil
	})
	testutil.Eventually(t, "it says hello", func() bool {
		n, fds, err := sock.Recv(make([]byte, maxMessage), 8)
		sys.CloseAll(fds)
		return n > 0 && err == nil
	})
	return sock
}

// FuzzWords has a peer write any words to any places of its memory that this side reads, while this side uses all of it.
func FuzzWords(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff" + "\x20\x00\xff\xff\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
		theirs := b.alloc(8192, peerBoth)
		mine := a.alloc(8192, peerBoth)
		_ = a.ep.Send(mk(make([]byte, 100000), ab, 1))
		_ = a.ep.Recv(recvOp(make([]byte, 100), 1))
		progress(t, "connected", func() bool { return a.peerState(ab) == "connected" }, b, a)
		key := theirs.Key()
		b.d.core.Lock()
		p := b.d.pairs[0]
		for ; len(script) >= 10 && p.state == pairUp; script = script[10:] {
			place, value := int(script[0])|int(script[1])<<8, uint64(0)
			for i := range 8 {
				value |= uint64(script[2+i]) << (8 * i)
			}
			if place&1 == 0 {
				word(p.mine.m.Bytes(), place/2*8%lanesSize).Store(value)
			} else {
				word(b.d.home.m.Bytes(), []int{homeArmed, homeTable}[place/2%2]+place/4*8%(64*entryLen)).Store(value)
			}
		}
		b.d.core.Unlock()
		_ = a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 100)}, Peer: ab, Key: key, Context: 2})
		_ = a.ep.Write(provider.Op{Local: provider.Segment{Bytes: make([]byte, 100)}, Peer: ab, Key: key, Context: 3})
		_ = mine.Close()
		for range 3 {
			a.drainSome()
			a.d.core.Lock()
			a.d.core.Progress()
			a.d.core.Unlock()
		}
	})
}

package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/fabrictest"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/fakeprov"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
	"github.com/weft-fabric/weft/prov/loop"
)

func TestMain(m *testing.M) {
	testutil.Main(m, fabrictest.Role(wraps()...), testutil.Role{Name: "failing-owner", Run: failingOwner})
}

// pair is a hooked side a, and a side b on the same network that is not hooked.
type pair struct {
	h      *Hook
	a, b   *fabric.Domain
	aq, bq *fabric.CompletionQueue
	ae, be *fabric.Endpoint
	to     fabric.Peer // b, as a knows it
}

func open(t testing.TB, p provider.Provider, name string, c fabric.DomainConfig) (*fabric.Domain, *fabric.CompletionQueue, *fabric.Endpoint) {
	t.Helper()
	infos, err := fabric.DiscoverIn(t.Context(), p, fabric.Hints{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := fabric.OpenDomainIn(p, infos[0], c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	q, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.OpenEndpoint(fabric.EndpointConfig{Name: name, Send: q, Recv: q})
	if err != nil {
		t.Fatal(err)
	}
	return d, q, e
}

// overBoth runs a test over the fake, where all happens in the posts, and over the reference, where it happens as it does.
func overBoth(t *testing.T, test func(t *testing.T, net provider.Provider)) {
	t.Run("fake", func(t *testing.T) { test(t, fakeprov.New("fake")) })
	t.Run("loop", func(t *testing.T) { test(t, loop.New()) })
}

func newPair(t testing.TB, c Config) *pair {
	t.Helper()
	return newPairOver(t, fakeprov.New("fake"), c)
}

func newPairOver(t testing.TB, net provider.Provider, c Config) *pair {
	t.Helper()
	p := &pair{h: Wrap(net, c)}
	p.a, p.aq, p.ae = open(t, p.h, "a", fabric.DomainConfig{})
	p.b, p.bq, p.be = open(t, net, "b", fabric.DomainConfig{})
	p.to = p.insert(t)
	return p
}

func (p *pair) insert(t testing.TB) fabric.Peer {
	t.Helper()
	to, err := p.a.Insert(p.be.Address())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func (p *pair) send(context uint64) error {
	return p.ae.Send(fabric.Op{Local: fabric.Bytes([]byte("message")), Peer: p.to, Context: context})
}

// one takes the next completion.
func one(t testing.TB, q *fabric.CompletionQueue) fabric.Completion {
	t.Helper()
	var c [1]fabric.Completion
	for {
		n, err := q.Wait(t.Context(), c[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return c[0]
		}
	}
}

// Without rules it is as if it were not there, but for the numbers and the name.
func TestPassThrough(t *testing.T) {
	p := newPair(t, Config{Name: "traced"})
	if got := p.a.Info().Provider; got != "traced" {
		t.Errorf("the domain is of %q", got)
	}
	buf := make([]byte, 10)
	if err := p.ae.Recv(fabric.Op{Local: fabric.Bytes(buf), Context: 1}); err != nil {
		t.Fatal(err)
	}
	if err := p.send(2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fabric.Completion{Context: 2, Kind: fabric.SendDone, Len: 7, Source: p.to}, one(t, p.aq)); diff != "" {
		t.Error(diff)
	}
	back, err := p.b.Insert(p.ae.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.be.Send(fabric.Op{Local: fabric.Bytes([]byte("back")), Peer: back}); err != nil {
		t.Fatal(err)
	}
	if c := one(t, p.aq); c.Context != 1 || c.Len != 4 || string(buf[:4]) != "back" {
		t.Errorf("%+v, %q", c, buf)
	}
	m, err := p.b.Register(memmon.HeapBytes([]byte("remote")), fabric.PeerRead|fabric.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	local, err := p.a.Alloc(8, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ae.Read(fabric.Op{Local: local.Slice(0, 6), Peer: p.to, Key: m.Key()}); err != nil {
		t.Fatal(err)
	}
	one(t, p.aq)
	if string(local.Bytes()[:6]) != "remote" {
		t.Errorf("read %q", local.Bytes())
	}
	if err := p.ae.Write(fabric.Op{Local: local.Slice(0, 1), Peer: p.to, Key: 99, Flags: fabric.Quiet}); err != nil {
		t.Fatal(err)
	}
	if c := one(t, p.aq); !errors.Is(c.Err, fabric.ErrKey) {
		t.Errorf("%+v", c)
	}
	v, err := p.a.View(t.Context(), p.to, m.Key(), 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	if err := p.ae.RecvTagged(fabric.Op{Tag: 1, Context: 5}); err != nil || !p.ae.Cancel(5) {
		t.Errorf("cancel: %v", err)
	}
	if c := one(t, p.aq); !errors.Is(c.Err, fabric.ErrCancelled) {
		t.Errorf("%+v", c)
	}
	if err := p.ae.SendTagged(fabric.Op{Tag: 1, Peer: p.to}); err != nil {
		t.Fatal(err)
	}
	one(t, p.aq)
	if err := p.ae.Atomic(fabric.Atomic{}); err == nil {
		t.Error("the fake has atomics")
	}
	if p.aq.Ready() == nil || !p.aq.TryWait() {
		t.Error("Ready or TryWait do not pass")
	}
	if got := p.a.Peers(); len(got) != 1 || got[0].Address != p.be.Address() {
		t.Errorf("%+v", got)
	}
	s := p.h.Stats()
	for kind, want := range map[fabric.Kind]OpStats{
		fabric.SendDone: {Posted: 1, Ended: 1, Bytes: 7}, fabric.RecvDone: {Posted: 1, Ended: 1, Bytes: 4},
		fabric.ReadDone: {Posted: 1, Ended: 1, Bytes: 6}, fabric.WriteDone: {Posted: 1, Ended: 1, Failed: 1},
		fabric.TRecvDone: {Posted: 1, Ended: 1, Failed: 1}, fabric.TSendDone: {Posted: 1, Ended: 1},
	} {
		got := s.Ops[kind]
		if timed := got.Latency.Count; (timed != 1) != (kind == fabric.WriteDone) {
			t.Errorf("%v: %d latencies", kind, timed) // a quiet one is not timed
		}
		got.Latency = Histogram{}
		if got != want {
			t.Errorf("%v: %+v, want %+v", kind, got, want)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	for name, r := range map[string]Rule{
		"nowhere":         {Drop: true},
		"elsewhere":       {At: 1 << 31, Delay: 1},
		"here, elsewhere": {At: Send | 1<<31, Delay: 1},
		"nothing":         {At: Send},
		"two things":      {At: Send, Drop: true, Kill: true},
		"chance":          {At: Send, Drop: true, Chance: 2},
		"delay":           {At: Send, Delay: -1},
		"kill a receive":  {At: Recv, Kill: true},
		"drop an alloc":   {At: Alloc, Drop: true},
		"refuse the end":  {At: Done, Err: provider.ErrNoMemory},
		"alloc try again": {At: Alloc, Err: provider.ErrAgain},
	} {
		h := Wrap(fakeprov.New("fake"), Config{Rules: []Rule{r}})
		infos, err := h.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.OpenDomain(infos[0], provider.DomainConfig{})
		if !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), ": rule 0: ") || !strings.HasSuffix(err.Error(), provider.ErrInvalid.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The same seed makes the same faults, another one others.
func TestSeeds(t *testing.T) {
	history := func(seed uint64) string {
		f := newFaults(seed, []Rule{{At: Send, Chance: 0.5, Drop: true}, {At: Send | Recv, Chance: 0.2, Err: provider.ErrAgain}})
		var b strings.Builder
		for range 200 {
			fmt.Fprintf(&b, "%+v", f.at(Send))
		}
		return b.String()
	}
	if first := history(1); history(1) != first || history(2) == first {
		t.Error("histories do not follow from seeds")
	}
	f := newFaults(1, []Rule{{At: Send, Chance: 0.25, Drop: true}})
	for range 10000 {
		f.at(Send)
	}
	if n := f.counts()[0]; n < 2300 || n > 2700 {
		t.Errorf("a chance of 0.25 acted %d times of 10000", n)
	}
	f = newFaults(1, []Rule{{At: Send, After: 2, Count: 3, Drop: true}, {At: Send, Delay: 5}, {At: Send, Delay: 6}})
	var got []bool
	for range 7 {
		v := f.at(Send)
		got = append(got, v.drop)
		if v.delay != 11 {
			t.Errorf("delays add up to %v", v.delay)
		}
	}
	if want := []bool{false, false, true, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("After 2, Count 3: %v", got)
	}
	if f.at(Recv) != (verdict{}) {
		t.Error("a rule acts elsewhere")
	}
}

// A refused post has no completion, and who waits for room is woken: by Wait, and by Ready.
func TestAgain(t *testing.T) { overBoth(t, testAgain) }

func testAgain(t *testing.T, net provider.Provider) {
	p := newPairOver(t, net, Config{Seed: 3, Rules: []Rule{{At: Starts, Chance: 0.5, Err: provider.ErrAgain}}})
	ready := p.aq.Ready()
	sent, again := 0, 0
	for sent < 50 {
		err := p.send(uint64(sent))
		if err == nil {
			sent++
			if c := one(t, p.aq); c.Context != uint64(sent-1) || c.Err != nil {
				t.Fatalf("%+v", c)
			}
			continue
		}
		if oe, ok := errors.AsType[*fabric.OpError](err); !ok || !errors.Is(err, fabric.ErrAgain) || oe.Addr != p.be.Address() {
			t.Fatalf("%v", err)
		}
		again++
		if again%2 == 0 {
			<-ready
			if p.aq.TryWait() {
				t.Fatal("TryWait would sleep before a post that may be tried again")
			}
		} else if n, err := p.aq.Wait(t.Context(), make([]fabric.Completion, 1)); n != 0 || err != nil {
			t.Fatalf("wait for room: %d, %v", n, err)
		}
	}
	if got := p.a.Stats().Again; got < uint64(again) {
		t.Errorf("the domain counts %d of %d refusals", got, again)
	}
	s := p.h.Stats()
	if op := s.Ops[fabric.SendDone]; op.Refused != uint64(again) || op.Posted != 50 || s.Acted[0] != uint64(again) || again < 20 {
		t.Errorf("%d refused: %+v, %v", again, op, s.Acted)
	}
}

func TestRefuse(t *testing.T) {
	p := newPair(t, Config{Rules: []Rule{
		{At: Send, Count: 1, Err: provider.ErrPeerGone},
		{At: Alloc | Register | View | Insert | OpenEndpoint, After: 2, Err: provider.ErrNoMemory}, // an endpoint and a peer are of the pair itself
	}})
	if err := p.send(1); !errors.Is(err, fabric.ErrPeerGone) || !strings.Contains(err.Error(), string(p.be.Address())) {
		t.Errorf("send: %v", err)
	}
	if err := p.send(2); err != nil {
		t.Errorf("the second send: %v", err)
	}
	one(t, p.aq)
	for name, f := range map[string]func() error{
		"alloc":    func() error { _, err := p.a.Alloc(1, 0); return err },
		"register": func() error { _, err := p.a.Register(memmon.HeapBytes([]byte{1}), 0); return err },
		"view":     func() error { _, err := p.a.View(t.Context(), p.to, 1, 0, 1); return err },
		"insert":   func() error { _, err := p.a.Insert("fake://x"); return err },
		"endpoint": func() error {
			_, err := p.a.OpenEndpoint(fabric.EndpointConfig{Send: p.aq, Recv: p.aq})
			return err
		},
	} {
		if err := f(); !errors.Is(err, fabric.ErrNoMemory) || !strings.HasPrefix(err.Error(), "fake: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := Wrap(fakeprov.New("fake"), Config{Rules: []Rule{{At: OpenDomain, Err: provider.ErrNoMemory}}})
	if _, err := h.OpenDomain(provider.Info{}, provider.DomainConfig{}); !errors.Is(err, provider.ErrNoMemory) {
		t.Errorf("open domain: %v", err)
	}
}

// What is dropped does not arrive, and ends once: by Cancel, by Remove, by Close of endpoint or domain.
func TestDrop(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(*pair) error
		want error
	}{
		"cancel": {func(p *pair) error {
			if !p.ae.Cancel(1) || p.ae.Cancel(1) {
				return errors.New("Cancel does not find it, once")
			}
			return nil
		}, fabric.ErrCancelled},
		"remove":   {func(p *pair) error { return p.a.Remove(p.to) }, fabric.ErrCancelled},
		"endpoint": {func(p *pair) error { return p.ae.Close() }, fabric.ErrClosed},
		"kill": {func(p *pair) error {
			if p.h.Kill(p.be.Address()) != 1 {
				return errors.New("nobody was killed")
			}
			return nil
		}, fabric.ErrPeerGone},
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, net provider.Provider) {
				var traced []fabric.Completion
				tracer := &provider.Tracer{Complete: func(c *provider.Completion) { traced = append(traced, *c) }}
				p := newPairOver(t, net, Config{Tracer: tracer, Rules: []Rule{{At: Send, Count: 1, Drop: true}}})
				if err := p.send(1); err != nil {
					t.Fatal(err)
				}
				var c [2]fabric.Completion
				if n, err := p.aq.Read(c[:]); n != 0 || err != nil {
					t.Fatalf("a dropped send has ended: %d, %v", n, err)
				}
				waited := make(chan fabric.Completion)
				go func() { waited <- one(t, p.aq) }()
				if err := end.do(p); err != nil {
					t.Fatal(err)
				}
				if c := <-waited; c.Context != 1 || c.Kind != fabric.SendDone || c.Source != p.to || !errors.Is(c.Err, end.want) {
					t.Errorf("%+v", c)
				}
				if n, err := p.aq.Read(c[:]); n != 0 || err != nil {
					t.Errorf("it ended twice: %+v, %v", c[:n], err)
				}
				if len(traced) != 1 || p.b.Stats().Received != 0 || p.h.Stats().Ops[fabric.SendDone].Dropped != 1 {
					t.Errorf("traced %+v, received %d, %+v", traced, p.b.Stats().Received, p.h.Stats().Ops)
				}
			})
		})
	}
	// The domain's Close: the completion is there to be read before the queue says that it is closed.
	net := fakeprov.New("fake")
	h := Wrap(net, Config{Rules: []Rule{{At: Recv, Drop: true}}})
	d, err := h.OpenDomain(net.Offer, provider.DomainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.OpenEndpoint(provider.EndpointConfig{Send: q, Recv: q})
	if err != nil {
		t.Fatal(err)
	}
	ready := q.Ready()
	for range held + 3 { // more than are held go on to the provider
		if err := e.Recv(provider.Op{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	<-ready
	n := 0
	c := make([]provider.Completion, 100)
	for {
		m, err := q.Read(c)
		for _, c := range c[:m] {
			if !errors.Is(c.Err, provider.ErrClosed) {
				t.Fatalf("%+v", c)
			}
		}
		if n += m; m == 0 || err != nil {
			break
		}
	}
	if n != held+3 {
		t.Errorf("%d of %d receives ended", n, held+3)
	}
}

// A killed peer is gone for all that was and all that comes; its address makes a new one.
func TestKill(t *testing.T) { overBoth(t, testKill) }

func testKill(t *testing.T, net provider.Provider) {
	var goneTo fabric.Address
	tracer := &provider.Tracer{PeerGone: func(_ provider.Peer, a provider.Address, why error) {
		if errors.Is(why, provider.ErrPeerGone) {
			goneTo = a
		}
	}}
	p := newPairOver(t, net, Config{Tracer: tracer, Rules: []Rule{{At: Send, After: 1, Count: 1, Kill: true}}})
	if err := p.send(1); err != nil {
		t.Fatal(err)
	}
	one(t, p.aq)
	for range 2 {
		err := p.send(2)
		if oe, ok := errors.AsType[*fabric.OpError](err); !ok || !errors.Is(err, fabric.ErrPeerGone) || oe.Addr != p.be.Address() {
			t.Fatalf("%v", err)
		}
	}
	if goneTo != p.be.Address() {
		t.Errorf("the tracer heard of the death of %q", goneTo)
	}
	if _, err := p.a.View(t.Context(), p.to, 1, 0, 1); !errors.Is(err, fabric.ErrPeerGone) {
		t.Errorf("view: %v", err)
	}
	if a, err := p.a.Address(p.to); a != p.be.Address() || err != nil {
		t.Errorf("the address of the dead: %q, %v", a, err)
	}
	if got := p.a.Peers(); len(got) != 1 || got[0].State != "gone" || !errors.Is(got[0].Why, fabric.ErrPeerGone) {
		t.Errorf("%+v", got)
	}
	old := p.to
	if p.to = p.insert(t); p.to == old {
		t.Error("the dead came back under its number")
	}
	if err := p.send(3); err != nil {
		t.Error(err)
	}
	one(t, p.aq)
	if p.h.Kill(p.be.Address()) != 1 || p.h.Kill(p.be.Address()) != 0 {
		t.Error("Kill does not find its peer, once")
	}
	if err := p.a.Remove(old); err != nil {
		t.Error(err)
	}
	if _, err := p.a.Address(old); err == nil {
		t.Error("a removed peer still has an address")
	}
}

// Receives for several peers, with one context: each tells what became of its own peer.
func TestKillOneOfTwo(t *testing.T) {
	for _, killFirst := range []bool{true, false} {
		for _, quiet := range [][2]fabric.Flags{{0, 0}, {fabric.Quiet, fabric.Quiet}, {0, fabric.Quiet}, {fabric.Quiet, 0}} {
			net := loop.New()
			p := newPairOver(t, net, Config{})
			_, _, ce := open(t, net, "c", fabric.DomainConfig{})
			toC, err := p.a.Insert(ce.Address())
			if err != nil {
				t.Fatal(err)
			}
			for i, to := range []fabric.Peer{toC, p.to} {
				if err := p.ae.Recv(fabric.Op{Local: fabric.Bytes(make([]byte, 8)), Peer: to, Flags: fabric.Directed | quiet[i]}); err != nil {
					t.Fatal(err)
				}
			}
			for _, kill := range []bool{killFirst, !killFirst} {
				want := fabric.ErrCancelled
				if kill {
					want = fabric.ErrPeerGone
					if p.h.Kill(p.be.Address()) != 1 {
						t.Fatal("nobody was killed")
					}
				} else if err := p.a.Remove(toC); err != nil {
					t.Fatal(err)
				}
				if got := one(t, p.aq); !errors.Is(got.Err, want) {
					t.Errorf("killed first: %v, quiet %v: a receive ended with %v, want %v", killFirst, quiet, got.Err, want)
				}
			}
		}
	}
}

// cancels is a provider whose Remove ends an operation, as real ones do.
type cancels struct {
	provider.CompletionQueue
	c []provider.Completion
}

func (q *cancels) Read(c []provider.Completion) (int, error) { return copy(c, q.c), nil }

// What a provider ends because the killed peer was removed is told as a death.
func TestKillTellsOutstanding(t *testing.T) {
	h := Wrap(fakeprov.New("fake"), Config{})
	d := &domain{hook: h, killed: map[provider.Peer]provider.Address{3: "fake://dead"}}
	by := func(a provider.Address) error { return &provider.OpError{Addr: a, Err: provider.ErrCancelled} }
	for i, c := range []struct {
		c    provider.Completion
		dead bool
	}{
		{provider.Completion{Source: 3, Err: by("")}, true},
		{provider.Completion{Err: by("fake://dead")}, true},
		{provider.Completion{Source: 4, Err: by("fake://dead")}, false}, // inserted again, and removed by the program
		{provider.Completion{Source: 4, Err: by("")}, false},
		{provider.Completion{Source: 3, Err: provider.ErrKey}, false},
		{provider.Completion{Source: 3}, false},
	} {
		q := newQueue(d, &cancels{c: []provider.Completion{c.c}})
		var got [1]provider.Completion
		if n, err := q.Read(got[:]); n != 1 || err != nil || errors.Is(got[0].Err, provider.ErrPeerGone) != c.dead {
			t.Errorf("%d: %d, %v, %+v", i, n, err, got[0])
		}
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{Rules: []Rule{{At: Send, Delay: time.Second}, {At: Done, Delay: 2 * time.Second}, {At: Alloc, Delay: time.Minute}}})
		begin := time.Now()
		if err := p.send(1); err != nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if one(t, p.aq); time.Since(begin) != 3*time.Second {
			t.Errorf("completion after %v", time.Since(begin))
		}
		if _, err := p.a.Alloc(1, 0); err != nil || time.Since(begin) != 63*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if l := p.h.Stats().Ops[fabric.SendDone].Latency; l.Max != 2*time.Second || l.Quantile(0.5) != 2*time.Second {
			t.Errorf("%v, %v", l.Max, l.Quantile(0.5))
		}
	})
}

// Signals of the program stay apart from the hook's own: each wakes one wait, and none gets lost or invented.
func TestSignals(t *testing.T) { overBoth(t, testSignals) }

func testSignals(t *testing.T, net provider.Provider) {
	p := newPairOver(t, net, Config{Rules: []Rule{{At: Recv, Drop: true}}})
	const n = 8
	ends := make(chan error, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			var c [1]fabric.Completion
			_, err := p.aq.Wait(context.WithoutCancel(t.Context()), c[:])
			ends <- errors.Join(err, c[0].Err)
		})
	}
	for i := range n / 2 {
		if err := p.ae.Recv(fabric.Op{Context: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	count := map[error]int{}
	for i := range n / 2 {
		if !p.ae.Cancel(uint64(i)) {
			t.Fatal("a dropped receive is not found")
		}
	}
	take := func() {
		err := <-ends
		for _, kind := range []error{fabric.ErrSignal, fabric.ErrCancelled} {
			if errors.Is(err, kind) {
				count[kind]++
			}
		}
	}
	for range n / 2 {
		take()
	}
	for range n / 2 {
		p.aq.Signal() // one at a time: a signal without a waiter is kept once only
		take()
	}
	all.Wait()
	if count[fabric.ErrSignal] != n/2 || count[fabric.ErrCancelled] != n/2 {
		t.Errorf("%v", count)
	}
	p.aq.Signal()
	p.aq.Signal()
	if _, err := p.aq.Wait(t.Context(), make([]fabric.Completion, 1)); !errors.Is(err, fabric.ErrSignal) {
		t.Errorf("a signal that nobody waited for: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.aq.Wait(ctx, make([]fabric.Completion, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("it came twice: %v", err)
	}
}

func TestForeignQueue(t *testing.T) {
	net := fakeprov.New("fake")
	h := Wrap(net, Config{})
	var queues [2]provider.CompletionQueue
	var domains [2]provider.Domain
	for i, p := range []provider.Provider{h, net} {
		d, err := p.OpenDomain(net.Offer, provider.DomainConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if queues[i], err = d.OpenCompletionQueue(provider.CQConfig{}); err != nil {
			t.Fatal(err)
		}
		domains[i] = d
	}
	if _, err := domains[0].OpenEndpoint(provider.EndpointConfig{Send: queues[0], Recv: queues[1]}); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	net := fakeprov.New("fake")
	var got map[string]string
	net.Opened = func(c provider.DomainConfig) { got = c.Options }
	h := Wrap(net, Config{Open: map[string]string{"disable": "cma,hugetlb", "fail": "memfd@2", "folder": "x"}})
	own := map[string]string{"disable": "pidfd", "fail": "process_vm", "folder": "y", "spin": "1"}
	open(t, h, "a", fabric.DomainConfig{Options: own})
	want := map[string]string{"disable": "pidfd,cma,hugetlb", "fail": "process_vm,memfd@2", "folder": "x", "spin": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if own["disable"] != "pidfd" {
		t.Error("the program's options were changed")
	}
}

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var posts int
	p := newPair(t, Config{Logger: logger, Tracer: &provider.Tracer{Post: func(provider.Kind, *provider.Op, error) { posts++ }}, Rules: []Rule{{At: Send, After: 1, Err: provider.ErrNoMemory}}})
	if err := p.send(7); err != nil {
		t.Fatal(err)
	}
	one(t, p.aq)
	if err := p.send(8); err == nil {
		t.Fatal("not refused")
	}
	p.h.Kill(p.be.Address())
	for _, want := range []string{
		"level=DEBUG msg=post op=send context=7 peer=1 bytes=7 flags=none\n",
		"level=DEBUG msg=complete op=send context=7 peer=1 bytes=7\n",
		`level=DEBUG msg=post op=send context=8 peer=1 bytes=7 flags=none refused="fake: send: peer fake://b: fabric: out of memory or descriptors"` + "\n",
		`level=INFO msg="peer is gone" peer=1 address=fake://b why=`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &b)
		}
	}
	if posts != 2 {
		t.Errorf("the tracer heard of %d posts", posts)
	}
	if Tee(nil, nil) != nil {
		t.Error("a tee of nothing is something")
	}
	b.Reset()
	both := Tee(Log(logger), &provider.Tracer{}, Log(logger))
	both.Sleep()
	both.Wake()
	both.PeerUp(1, "fake://c")
	both.Complete(&provider.Completion{Err: provider.ErrKey})
	if n := strings.Count(b.String(), "\n"); n != 8 || !strings.Contains(b.String(), `error="`+provider.ErrKey.Error()+`"`) {
		t.Errorf("%d lines:\n%s", n, &b)
	}
	b.Reset()
	quiet := Log(slog.New(slog.NewTextHandler(&b, nil)))
	quiet.Post(provider.SendDone, &provider.Op{}, nil)
	quiet.Complete(&provider.Completion{})
	if b.Len() != 0 {
		t.Errorf("level Info hears %s", &b)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 100 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	h.add(-1)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 0}, {0.5, 50 * time.Microsecond}, {0.99, 99 * time.Microsecond}, {1, 99 * time.Microsecond}} {
		if got := h.Quantile(c.q); got < c.want || got > 2*c.want {
			t.Errorf("quantile %v is %v, want %v to twice that", c.q, got, c.want)
		}
	}
	few := Histogram{}
	for _, ns := range []time.Duration{1, 1000, 1000} {
		few.add(ns)
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.33, 1}, {0.34, 1000}, {0.5, 1000}, {1, 1000}} {
		if got := few.Quantile(c.q); got != c.want {
			t.Errorf("quantile %v of 1, 1000 and 1000 ns is %v", c.q, got)
		}
	}
	h.add(1 << 62)
	if h.Quantile(1) != 1<<47-1 && h.Quantile(1) != 1<<62 {
		t.Errorf("%v", h.Quantile(1))
	}
	if (&Histogram{}).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}

// Everything at once, under random faults: each post that was taken ends exactly once.
func TestExactlyOnce(t *testing.T) { overBoth(t, testExactlyOnce) }

func testExactlyOnce(t *testing.T, net provider.Provider) {
	rules := []Rule{
		{At: Posts, Chance: 0.2, Err: provider.ErrAgain}, {At: Posts, Chance: 0.1, Drop: true}, {At: Send, Chance: 0.01, Kill: true},
		{At: Posts, Chance: 0.05, Err: provider.ErrNoMemory},
	}
	r := testutil.Rand(t)
	for range testutil.Count(t, 20, 500) {
		t.Run("", func(t *testing.T) { exactlyOnceRound(t, newPairOver(t, net, Config{Seed: r.Uint64(), Rules: rules})) })
	}
}

func exactlyOnceRound(t *testing.T, p *pair) {
	var mu sync.Mutex
	taken, ended := map[uint64]bool{}, map[uint64]int{}
	var posts sync.WaitGroup
	for g := range uint64(4) {
		posts.Go(func() {
			to := p.to
			for i := range uint64(100) {
				context := g<<32 | i + 1
				op := fabric.Op{Context: context, Local: fabric.Bytes(make([]byte, 8))}
				post := p.ae.Recv
				if i%2 == 0 {
					op.Peer, post = to, p.ae.Send
				}
				switch err := post(op); {
				case err == nil:
					mu.Lock()
					taken[context] = true
					mu.Unlock()
				case errors.Is(err, fabric.ErrPeerGone):
					to, _ = p.a.Insert(p.be.Address())
				case !errors.Is(err, fabric.ErrAgain) && !errors.Is(err, fabric.ErrNoMemory):
					t.Errorf("post: %v", err)
				}
				if i%5 == 0 {
					p.ae.Cancel(context - 1)
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var c [7]fabric.Completion
			for {
				n, err := p.aq.Wait(context.WithoutCancel(t.Context()), c[:])
				if err != nil {
					return
				}
				mu.Lock()
				for _, c := range c[:n] {
					ended[c.Context]++
				}
				mu.Unlock()
			}
		})
	}
	posts.Wait()
	if err := errors.Join(p.ae.Close(), p.aq.Close()); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	for context := range taken {
		if ended[context] != 1 {
			t.Errorf("%x ended %d times", context, ended[context])
		}
	}
	if len(ended) != len(taken) {
		t.Errorf("%d posts were taken, %d ended", len(taken), len(ended))
	}
}

// Starts of one key are a line: first come, first ended; a refused post takes back the last.
func TestStarts(t *testing.T) {
	s := starts{by: make(map[startKey]line)}
	begin := time.Now()
	add := func(context uint64, after time.Duration, f provider.Flags) {
		s.add(provider.RecvDone, &provider.Op{Context: context, Flags: f}, "", begin.Add(after))
	}
	end := func(context uint64, f provider.CompletionFlags, err error) time.Duration {
		d, ok := s.end(&provider.Completion{Kind: provider.RecvDone, Context: context, Flags: f, Err: err}, begin.Add(100))
		if !ok {
			return -1
		}
		return 100 - d
	}
	for round := range 3 {
		for i := range 5 {
			add(1, time.Duration(i), 0)
		}
		s.remove(provider.RecvDone, 1)
		add(2, 7, provider.Multi)
		add(3, 8, 0)
		s.remove(provider.RecvDone, 3)
		s.remove(provider.RecvDone, 3)
		s.remove(provider.SendDone, 1)
		got := []time.Duration{
			end(1, 0, nil), end(1, 0, nil), end(2, 0, nil), end(1, 0, nil), end(2, 0, nil), end(1, 0, nil), end(1, 0, nil),
			end(2, provider.MultiDone, nil), end(2, 0, nil), end(3, 0, nil),
		}
		if diff := cmp.Diff([]time.Duration{0, 1, 7, 2, 7, 3, -1, 7, -1, -1}, got); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
		add(2, 9, provider.Multi)
		if end(2, 0, provider.ErrClosed) != 9 || end(2, 0, nil) != -1 {
			t.Error("an error does not end a multi receive")
		}
	}
	if len(s.entries) != 6 || len(s.by) != 0 {
		t.Errorf("%d entries, %d keys", len(s.entries), len(s.by))
	}
}

// What ends is found among those of one context by its peer, or by the address in its error.
func TestStartsOfPeers(t *testing.T) {
	begin := time.Now()
	by := func(a provider.Address) error { return &provider.OpError{Addr: a, Err: provider.ErrCancelled} }
	for name, c := range map[string]struct {
		c    provider.Completion
		want int // which entry
		peer provider.Peer
		sure bool
		next []int // which ones a second and a third completion end of which nothing is known
	}{
		"from one":              {provider.Completion{Source: 4}, 1, 4, true, []int{0, 2}},
		"of one":                {provider.Completion{Err: by("addr-4")}, 1, 4, true, []int{0, 2}},
		"the last":              {provider.Completion{Err: by("addr-5")}, 2, 5, true, []int{0, 1}},
		"the first":             {provider.Completion{Err: by("addr-3")}, 0, 3, true, []int{1, 2}},
		"of nobody here":        {provider.Completion{Err: by("addr-9")}, 0, 3, false, []int{1, 2}},
		"from nobody here":      {provider.Completion{Source: 9}, 0, 3, false, []int{1, 2}},
		"nothing is known":      {provider.Completion{}, 0, 3, false, []int{1, 2}},
		"an error tells nobody": {provider.Completion{Err: provider.ErrCancelled}, 0, 3, false, []int{1, 2}},
	} {
		s := starts{by: make(map[startKey]line)}
		for i := range 3 {
			op := &provider.Op{Peer: provider.Peer(3 + i), Flags: provider.Directed}
			s.add(provider.RecvDone, op, provider.Address(fmt.Sprintf("addr-%d", 3+i)), begin.Add(time.Duration(i)))
		}
		c.c.Kind = provider.RecvDone
		if p, sure := s.peer(&c.c); p != c.peer || sure != c.sure {
			t.Errorf("%s: peer %d, %v", name, p, sure)
		}
		for i, want := range append([]int{c.want}, c.next...) {
			if d, ok := s.end(&c.c, begin); !ok || d != -time.Duration(want) {
				t.Errorf("%s: completion %d ends operation %d, want %d", name, i, -d, want)
			}
			c.c.Source, c.c.Err = 0, nil
		}
		if len(s.by) != 0 || len(s.entries) != 3 {
			t.Errorf("%s: %d keys, %d entries are left", name, len(s.by), len(s.entries))
		}
		s.add(provider.RecvDone, &provider.Op{Peer: 7, Flags: provider.Directed}, "addr-7", begin)
		if p, sure := s.peer(&provider.Completion{Kind: provider.RecvDone}); p != 7 || !sure {
			t.Errorf("%s: the only one: peer %d, %v", name, p, sure)
		}
	}
}

// A hook that only counts allocates nothing for an operation.
func TestNoAllocation(t *testing.T) {
	p := newPairOver(t, loop.New(), Config{})
	buf := make([]byte, 8)
	var c [1]fabric.Completion
	round := func() {
		if err := p.be.Recv(fabric.Op{Local: fabric.Bytes(buf)}); err != nil {
			t.Fatal(err)
		}
		if err := p.ae.Send(fabric.Op{Local: fabric.Bytes(buf), Peer: p.to}); err != nil {
			t.Fatal(err)
		}
		for _, q := range []*fabric.CompletionQueue{p.aq, p.bq} {
			for n, err := 0, error(nil); n == 0; {
				if n, err = q.Read(c[:]); err != nil || c[0].Err != nil {
					t.Fatal(err, c[0].Err)
				}
			}
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a message allocates %v times", n)
	}
}

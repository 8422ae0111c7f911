package shm

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// progress drives sides in manual mode until something is so.
func progress(t *testing.T, what string, ok func() bool, sides ...*side) {
	t.Helper()
	testutil.Eventually(t, what, func() bool {
		for range 100 {
			for _, s := range sides {
				s.d.core.Lock()
				s.d.core.Progress()
				s.d.core.Unlock()
			}
		}
		return ok()
	})
}

func (s *side) peerState(p provider.Peer) string {
	for _, q := range s.d.Peers() {
		if q.Peer == p {
			return q.State
		}
	}
	return "unknown"
}

// F27: both call at the same time, and both messages arrive, over one pair.
func TestF27CallsCross(t *testing.T) {
	for _, mode := range bothModes {
		for range testutil.Count(t, 20, 500) {
			a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: mode})
			in := [2][]byte{make([]byte, 8), make([]byte, 8)}
			a.must(a.ep.Recv(recvOp(in[0], 1)))
			b.must(b.ep.Recv(recvOp(in[1], 1)))
			// Nobody progresses in between: the two calls cross.
			a.must(a.ep.Send(mk([]byte("from a.."), ab, 2)))
			b.must(b.ep.Send(mk([]byte("from b.."), ba, 2)))
			for s, other := range map[*side]*side{a: b, b: a} {
				for range 2 {
					if c := s.wait(other); c.Err != nil {
						t.Fatal(c.Err)
					}
				}
			}
			if string(in[0]) != "from b.." || string(in[1]) != "from a.." {
				t.Fatalf("%q, %q", in[0], in[1])
			}
			for _, s := range []*side{a, b} {
				if n := len(s.d.Peers()); n != 1 || s.d.Stats().Peers != 1 {
					t.Fatalf("%d peers, %d connected", n, s.d.Stats().Peers)
				}
			}
			for _, s := range []*side{a, b} {
				if err := s.d.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The call that counts fails, since its caller dies: the one that waited behind it is answered.
func TestCallBehindADeadOne(t *testing.T) {
	a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	first, second := a, b
	to, back := ab, ba
	if a.ep.(*endpoint).inc > b.ep.(*endpoint).inc { // first's call counts
		first, second, to, back = b, a, ba, ab
	}
	first.must(first.ep.Send(mk([]byte("12345678"), to, 1)))
	second.must(second.ep.Send(mk([]byte("12345678"), back, 1)))
	// first takes second's call in and lets it wait; second answers first's.
	progress(t, "connected", func() bool { return first.peerState(to) == "connected" && second.peerState(back) == "connected" }, first, second)
	first.good(first.wait(second), provider.SendDone, 1)
	second.good(second.wait(first), provider.SendDone, 1)
}

// with is an address with another value of a parameter that it has.
func with(text, key, value string) provider.Address {
	return provider.Address(regexp.MustCompile(key+"=[^&]*").ReplaceAllString(text, key+"="+value))
}

func TestAddresses(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: "named " + t.Name()})
	text := string(a.ep.Address())
	if !strings.HasPrefix(text, "shm://named%20TestAddresses?boot=") {
		t.Errorf("address %s", text)
	}
	// The name alone is always the same peer; it is that of the full address once it is connected.
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	bare := b.insert("shm://named%20TestAddresses")
	a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
	b.must(b.ep.Send(mk(make([]byte, 8), bare, 2)))
	b.good(b.wait(), provider.SendDone, 2)
	a.good(a.wait(), provider.RecvDone, 1)
	if p := b.insert("shm://named%20TestAddresses"); p != bare {
		t.Errorf("%d, after the connection %d", bare, p)
	}
	if p := b.insert(a.ep.Address()); p != bare {
		t.Errorf("%d by its name, %d by its address", bare, p)
	}
	for what, bad := range map[string]provider.Address{
		"another incarnation": with(text, "inc", "1"),
		"another node":        with(text, "boot", strings.Repeat("0", 32)),
		"another namespace":   provider.Address(strings.Replace(text, "net=", "net=1", 1)),
		"another user":        provider.Address(strings.Replace(text, "uid=", "uid=77", 1)),
		"no such name":        "shm://nobody-has-this-name",
	} {
		b.must(b.ep.Send(mk(make([]byte, 8), b.insert(bad), 3)))
		if c := b.wait(); !errors.Is(c.Err, provider.ErrUnreachable) {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if _, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: "named " + t.Name()}); !errors.Is(err, provider.ErrBusy) {
		t.Errorf("the name a second time: %v", err)
	}
	if _, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: strings.Repeat("x", maxName+1)}); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("a long name: %v", err)
	}
	long := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: strings.Repeat("x", maxName)})
	to := b.insert(long.ep.Address())
	b.must(b.ep.Send(mk(make([]byte, 8), to, 4)))
	b.good(b.wait(), provider.SendDone, 4)
}

// Processes of another network namespace come through the folder; what a dead owner left there is replaced.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	c := provider.DomainConfig{Options: map[string]string{"folder": dir}}
	a := newSide(t, c, provider.EndpointConfig{Name: t.Name()})
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	b.d.net++ // as if it were in another one
	if !strings.Contains(string(a.ep.Address()), "path=") {
		t.Errorf("address %s", a.ep.Address())
	}
	exchange(t, b, a)
	path := folderName(dir, t.Name()).Name
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := a.ep.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	dead, err := sys.ListenUnix(sys.UnixAddress{Name: path}, sys.SeqPacket, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil { // the file stays, as after kill -9
		t.Fatal(err)
	}
	again := newSide(t, c, provider.EndpointConfig{Name: t.Name()})
	exchange(t, b, again)
}

// exchange sends one message.
func exchange(t *testing.T, from, to *side) {
	t.Helper()
	to.must(to.ep.Recv(recvOp(make([]byte, 8), 1)))
	from.must(from.ep.Send(mk(make([]byte, 8), from.insert(to.ep.Address()), 2)))
	from.good(from.wait(), provider.SendDone, 2)
	to.good(to.wait(), provider.RecvDone, 1)
}

// Strangers who send garbage, or what is not sealed, are refused, and cost nobody else anything.
func TestBadHellos(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: t.Name()})
	ep := a.ep.(*endpoint)
	at := socketName(a.d.uid, t.Name())
	good := hello{kind: kindHello, inc: 5, boot: a.d.boot, layout: ourLayout, uid: a.d.uid, net: a.d.net, from: "x", to: t.Name()}
	with := func(change func(*hello)) []byte {
		h := good
		change(&h)
		return h.Append(nil)
	}
	home, err := newFile("home", homeSize, false, a.d.features)
	if err != nil {
		t.Fatal(err)
	}
	defer home.close()
	lanes, err := newFile("lanes", lanesSize, false, a.d.features)
	if err != nil {
		t.Fatal(err)
	}
	defer lanes.close()
	loose, err := sys.Memfd(sys.MemfdConfig{Name: "loose", Size: lanesSize})
	if err != nil {
		t.Fatal(err)
	}
	defer loose.Close()
	both := []*sys.FD{home.fd, lanes.fd}
	for what, c := range map[string]struct {
		wire []byte
		fds  []*sys.FD
	}{
		"nothing":             {nil, nil},
		"garbage":             {[]byte("GET / HTTP/1.1\r\n\r\n"), nil},
		"half a hello":        {good.Append(nil)[:50], nil},
		"no descriptors":      {good.Append(nil), nil},
		"too few":             {good.Append(nil), both[:1]},
		"too many":            {good.Append(nil), append(both, loose)},
		"not sealed":          {good.Append(nil), []*sys.FD{home.fd, loose}},
		"swapped":             {good.Append(nil), []*sys.FD{lanes.fd, home.fd}},
		"a bell that is none": {with(func(h *hello) { h.features = hasBell }), append(both, loose)},
		"another layout":      {with(func(h *hello) { h.layout.data++ }), both},
		"another boot":        {with(func(h *hello) { h.boot[0]++ }), both},
		"another name":        {with(func(h *hello) { h.to = "y" }), both},
		"another inc":         {with(func(h *hello) { h.want = 1 }), both},
		"a welcome":           {with(func(h *hello) { h.kind = kindWelcome }), both},
		"a refusal":           {refusal{code: 1}.Append(nil), nil},
	} {
		sock, err := sys.ConnectUnix(at, sys.SeqPacket)
		if err != nil {
			t.Fatal(err)
		}
		if c.wire != nil {
			if _, err := sock.Send(c.wire, c.fds...); err != nil {
				t.Fatal(err)
			}
			testutil.Eventually(t, "refused: "+what, func() bool {
				_, fds, err := sock.Recv(make([]byte, maxMessage), 8)
				sys.CloseAll(fds)
				return err != nil && !errors.Is(err, sys.ErrWouldBlock)
			})
		}
		if err := sock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Many who say nothing do not keep others out.
	var silent []sys.Socket
	for range maxStrangers + 50 {
		sock, err := sys.ConnectUnix(at, sys.SeqPacket)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, sock)
	}
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	exchange(t, b, a)
	for _, s := range silent {
		_ = s.Close()
	}
	testutil.Eventually(t, "the silent are forgotten", func() bool {
		a.d.core.Lock()
		defer a.d.core.Unlock()
		return len(ep.strangers) == 0
	})
}

package shm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

func init() { roles = append(roles, testutil.Role{Name: "caller", Run: caller}) }

// caller sends a message to an address, and gets one at a name. Arguments: folder, address, name.
func caller(args []string) error {
	d, err := open(provider.Info{}, provider.DomainConfig{Options: map[string]string{"folder": args[0]}})
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Name: args[2], Send: cq, Recv: cq})
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[1]))
	if err != nil {
		return err
	}
	if err := errors.Join(ep.Recv(recvOp(make([]byte, 8), 1)), ep.Send(mk([]byte("here I am"), to, 2))); err != nil {
		return err
	}
	var c [1]provider.Completion
	for range 2 {
		if _, err := cq.Wait(d.background, c[:]); err != nil || c[0].Err != nil {
			return errors.Join(err, c[0].Err)
		}
	}
	fmt.Println("done", len(d.Peers()))
	return d.Close()
}

// elsewhere is a side as in another network namespace: it has its name in the folder alone.
func elsewhere(t *testing.T, c provider.DomainConfig, name string) *side {
	t.Helper()
	a := newSide(t, c, provider.EndpointConfig{})
	a.must(a.ep.Close())
	a.d.core.Lock()
	a.d.net++
	a.d.core.Unlock()
	ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: name, Send: a.cq, Recv: a.cq})
	a.must(err)
	a.ep = ep
	a.within(func() {
		e := ep.(*endpoint)
		e.listeners[0].close()
		e.listeners = e.listeners[1:]
	})
	return a
}

// A name finds its endpoint in the folder, if the domain has one or the address says one, from another network namespace too. It is the
// same number as the full address then, and both call at once.
func TestNameInTheFolder(t *testing.T) {
	dir := t.TempDir()
	in := provider.DomainConfig{Options: map[string]string{"folder": dir}}
	for what, c := range map[string]struct {
		config provider.DomainConfig
		query  string
	}{
		"the domain's": {in, ""}, "the address's": {provider.DomainConfig{}, "?path=" + dir}, "both": {in, "?path=" + dir},
	} {
		name := strings.ReplaceAll(t.Name()+what, " ", "-")
		a, b := elsewhere(t, in, name), newSide(t, c.config, provider.EndpointConfig{Name: name + "2"})
		to := b.insert(provider.Address("shm://" + name + c.query))
		if again := b.insert(provider.Address("shm://" + name + c.query)); again != to {
			t.Errorf("%s: %d, then %d", what, to, again)
		}
		a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
		b.must(b.ep.Send(mk(make([]byte, 8), to, 2)))
		b.good(b.wait(), provider.SendDone, 2)
		from := a.good(a.wait(), provider.RecvDone, 1).Source
		if full := b.insert(a.ep.Address()); full != to {
			t.Errorf("%s: %d by its name, %d by its address", what, to, full)
		}
		if b.insert(provider.Address(fmt.Sprintf("shm://%s?net=%d", name, b.d.net))) == to {
			t.Errorf("%s: it is that of this namespace, too", what)
		}
		b.must(b.ep.Recv(recvOp(make([]byte, 8), 3)))
		a.must(a.ep.Send(mk(make([]byte, 8), from, 4)))
		a.good(a.wait(), provider.SendDone, 4)
		if got := b.good(b.wait(), provider.RecvDone, 3).Source; got != to {
			t.Errorf("%s: its message is from %d, it is %d", what, got, to)
		}
	}
}

// When a connection has ended and nobody is gone, the name is anybody's again, in whatever namespace.
func TestNameMovesToAnotherNamespace(t *testing.T) {
	in := provider.DomainConfig{Options: map[string]string{"folder": t.TempDir()}}
	a, b := elsewhere(t, in, t.Name()), newSide(t, in, provider.EndpointConfig{})
	to := b.insert(provider.Address("shm://" + t.Name()))
	a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
	b.must(b.ep.Send(mk(make([]byte, 8), to, 2)))
	b.good(b.wait(), provider.SendDone, 2)
	a.good(a.wait(), provider.RecvDone, 1)
	b.must(b.ep.Close())
	a.must(a.ep.Close())
	heir := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: t.Name()})
	ep, err := b.d.OpenEndpoint(provider.EndpointConfig{Send: b.cq, Recv: b.cq})
	b.must(err)
	heir.must(heir.ep.Recv(recvOp(make([]byte, 8), 3)))
	b.must(ep.Send(mk(make([]byte, 8), to, 4)))
	b.good(b.wait(), provider.SendDone, 4)
	heir.good(heir.wait(), provider.RecvDone, 3)
}

// Two that know each other by name, in two network namespaces, and call at the same time, have one connection.
func TestNamesInTheFolderCross(t *testing.T) {
	c := provider.DomainConfig{Progress: provider.Manual, Options: map[string]string{"folder": t.TempDir()}}
	a, b := elsewhere(t, c, t.Name()+"a"), elsewhere(t, c, t.Name()+"b")
	b.within(func() { // not the same namespace as a's either
		b.d.net++
		b.ep.(*endpoint).addr.net++
	})
	ab, ba := a.insert(provider.Address("shm://"+t.Name()+"b")), b.insert(provider.Address("shm://"+t.Name()+"a"))
	a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
	b.must(b.ep.Recv(recvOp(make([]byte, 8), 1)))
	a.must(a.ep.Send(mk(make([]byte, 8), ab, 2)))
	b.must(b.ep.Send(mk(make([]byte, 8), ba, 2)))
	for s, other := range map[*side]*side{a: b, b: a} {
		for range 2 {
			if c := s.wait(other); c.Err != nil {
				t.Fatal(c.Err)
			}
		}
		if n := len(s.d.Peers()); n != 1 || s.d.Stats().Peers != 1 {
			t.Errorf("%d peers, %d connected", n, s.d.Stats().Peers)
		}
	}
}

// What names mean that differ in the network namespace is kept apart until they are connected.
func TestNameInANamespace(t *testing.T) {
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": t.TempDir()}}, provider.EndpointConfig{})
	if x, y := a.insert("shm://nobody"), a.insert("shm://nobody?net=5"); x == y {
		t.Error("one number for both")
	}
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	if x, y := b.insert("shm://nobody"), b.insert(provider.Address(fmt.Sprint("shm://nobody?net=", b.d.net))); x != y {
		t.Error("without a folder a name is in this namespace")
	}
}

// Where nobody listens the error says where it was looked for.
func TestNobodyInTheFolder(t *testing.T) {
	dir := t.TempDir()
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": dir}}, provider.EndpointConfig{})
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	for address, want := range map[provider.Address][2]string{
		"shm://nobody":                  {"not in this network namespace, and nobody listens for it in the folder " + dir, "the option folder spans these"},
		"shm://nobody?net=5":            {"in another network namespace, and nobody listens for it in the folder " + dir, "has no folder"},
		"shm://nobody?path=/no/such":    {"nobody listens for it in the folder /no/such", "nobody listens for it in the folder /no/such"},
		"shm://nobody?path=/proc&net=5": {"nobody listens for it in the folder /proc", "nobody listens for it in the folder /proc"},
	} {
		for i, s := range []*side{a, b} {
			s.must(s.ep.Send(mk(make([]byte, 8), s.insert(address), 1)))
			if c := s.wait(); !errors.Is(c.Err, provider.ErrUnreachable) || !strings.Contains(c.Err.Error(), want[i]) {
				t.Errorf("%s: %v, not with %q", address, c.Err, want[i])
			}
		}
	}
}

// The same with the kernel's own namespaces.
func TestNameAcrossNamespaces(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	dir := t.TempDir()
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": dir}}, provider.EndpointConfig{Name: t.Name()})
	exe, env := testutil.RoleCommand(t, "caller")
	child := testutil.Start(t, "", []string{env}, "unshare", "--net", "--", exe, dir, "shm://"+t.Name(), "caller")
	to := a.insert("shm://caller")
	a.must(a.ep.Recv(recvOp(make([]byte, 16), 1)))
	if got := a.good(a.wait(), provider.RecvDone, 1).Source; got != to {
		t.Errorf("a message from %d, it is %d", got, to)
	}
	a.must(a.ep.Send(mk(make([]byte, 8), to, 2)))
	a.good(a.wait(), provider.SendDone, 2)
	if got := child.Expect("done "); got != "1" {
		t.Errorf("it knows %s peers", got)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

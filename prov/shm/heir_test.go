package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

func init() { roles = append(roles, testutil.Role{Name: "testator", Run: testator}) }

// ballast is what makes a death take some ten milliseconds.
const ballast = 384 << 20

// testator has a name and much memory, is connected, and waits to be killed. Arguments: address, name, folder, and "there" if it has
// the name in the folder alone, as one of another network namespace.
func testator(args []string) error {
	weight := make([]byte, ballast)
	for i := 0; i < len(weight); i += pageSize {
		weight[i] = 1
	}
	var c provider.DomainConfig
	if args[2] != "" {
		c.Options = map[string]string{"folder": args[2]}
	}
	d, err := open(provider.Info{}, c)
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	name := args[1]
	if args[3] == "there" {
		if _, err := sys.ListenUnix(folderName(args[2], name), sys.SeqPacket, backlog); err != nil {
			return err
		}
		name += " elsewhere"
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Name: name, Send: cq})
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[0]))
	if err != nil {
		return err
	}
	if err := ep.Send(mk([]byte("here I am"), to, 0)); err != nil {
		return err
	}
	var done [1]provider.Completion
	if _, err := cq.Wait(d.background, done[:]); err != nil || done[0].Err != nil {
		return errors.Join(err, done[0].Err)
	}
	fmt.Println("ready", ep.Address())
	fmt.Fscanln(os.Stdin)
	fmt.Println(weight[0])
	return nil
}

// P3: a name is free at once when its owner is noticed to die, although the kernel closes the sockets of the dead after it has freed
// its memory; before that it is not.
func TestNameOfTheDying(t *testing.T) {
	testutil.Require(t, feature(sys.RobustList), feature(sys.FutexWaitv))
	for _, mode := range bothModes {
		for _, where := range []string{"here", "both", "there"} {
			c, folder := provider.DomainConfig{Progress: mode}, ""
			if where != "here" {
				folder = t.TempDir()
				c.Options = map[string]string{"folder": folder}
			}
			a := newSide(t, c, provider.EndpointConfig{})
			name := t.Name() + mode.String() + where
			a.must(a.ep.Recv(recvOp(make([]byte, 100), 1)))
			child := testutil.Child(t, "testator", string(a.ep.Address()), name, folder, where)
			a.good(a.wait(), provider.RecvDone, 1)
			to := a.insert(provider.Address(child.Expect("ready ")))

			start := time.Now()
			_, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: name})
			if !errors.Is(err, provider.ErrBusy) || time.Since(start) > heirSays {
				t.Errorf("%v, %s: while it lives, after %v: %v", mode, where, time.Since(start), err)
			}
			a.postFrom(to, 2)
			child.Kill()
			if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != 2 {
				t.Fatalf("%+v", c)
			}
			ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: name})
			if err != nil {
				t.Errorf("%v, %s: %v", mode, where, err)
				continue
			}
			a.must(ep.Close())
		}
	}
}

// The end of a connection to a dying process is waited for as long as there is hope, the domain is open, and it says nothing.
func TestWaitForTheDying(t *testing.T) {
	at := sys.UnixAddress{Name: "weft-test/" + t.Name(), Abstract: true}
	for what, c := range map[string]struct {
		act  func(d *domain, stop func(), listener, accepted sys.Socket)
		want string
	}{
		"it ends":           {func(_ *domain, _ func(), l, s sys.Socket) { _, _ = l.Close(), s.Close() }, ""},
		"it answers":        {func(_ *domain, _ func(), _, s sys.Socket) { _, _ = s.Send([]byte("hello")) }, "it lives"},
		"the domain closes": {func(d *domain, _ func(), _, _ sys.Socket) { _ = d.Close() }, provider.ErrClosed.Error()},
		"its time is over":  {func(_ *domain, stop func(), _, _ sys.Socket) { stop() }, "its memory was not freed in 10s"},
	} {
		a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
		l, err := sys.ListenUnix(at, sys.SeqPacket, 1)
		a.must(err)
		mine, err := sys.ConnectUnix(at, sys.SeqPacket)
		a.must(err)
		theirs, err := l.Accept()
		a.must(err)
		ctx, stop := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- a.d.waitEnd(ctx, mine, 1) }()
		c.act(a.d, stop, l, theirs)
		if err := <-got; c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", what, err)
		}
		stop()
		for _, s := range []sys.Socket{mine, theirs, l} {
			_ = s.Close()
		}
	}
}

// Whose queue is full is not waited for: whether it is dying cannot be asked.
func TestNameWithAFullQueue(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	full, err := sys.ListenUnix(socketName(a.d.uid, t.Name()), sys.SeqPacket, 0)
	a.must(err)
	defer full.Close()
	for { // until no connection can be made
		s, err := sys.ConnectUnix(socketName(a.d.uid, t.Name()), sys.SeqPacket)
		if err != nil {
			break
		}
		defer s.Close()
	}
	start := time.Now()
	_, err = a.d.OpenEndpoint(provider.EndpointConfig{Name: t.Name()})
	if !errors.Is(err, provider.ErrBusy) || !errors.Is(err, syscall.EADDRINUSE) || time.Since(start) > heirSays {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

package shm

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// anyUser lets processes of all users connect.
func anyUser(p provider.Progress) provider.DomainConfig {
	return provider.DomainConfig{Progress: p, Options: map[string]string{"allow-uid": "any"}}
}

// strangersToEachOther makes two connected domains believe that the other one is another user's. Unlocked.
func strangersToEachOther(sides ...*side) {
	for _, s := range sides {
		s.d.core.Lock()
		for _, p := range s.d.pairs {
			p.uid = s.d.uid + 4242
		}
		s.d.core.Unlock()
	}
}

// A message that lies in memory which peers may write goes to another user as well, who cannot map it.
func TestOtherUserGetsMessage(t *testing.T) {
	for _, n := range []int{5000, 200 << 10} {
		a, b, ab, _ := twoSides(t, provider.DomainConfig{})
		exchange(t, a, b)
		strangersToEachOther(a, b)
		m := a.alloc(n, peerBoth)
		copy(m.Bytes(), pattern(n, 3))
		buf := make([]byte, n)
		b.must(b.ep.Recv(recvOp(buf, 1)))
		a.must(a.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ab, Context: 2}))
		b.good(b.wait(), provider.RecvDone, 1)
		a.good(a.wait(), provider.SendDone, 2)
		if !bytes.Equal(buf, pattern(n, 3)) {
			t.Errorf("%d bytes are others", n)
		}
	}
}

// Who listens at a name of a user must be that user, though others may connect as well.
func TestImpostor(t *testing.T) {
	for _, how := range []string{"", "&inc=1234567890abcdef"} {
		a := newSide(t, anyUser(provider.Manual), provider.EndpointConfig{})
		d, err := open(provider.Info{}, anyUser(provider.Manual))
		a.must(err)
		real := d.uid
		d.uid += 4242 // this process is not that user's, and listens at its name
		ep, err := d.OpenEndpoint(provider.EndpointConfig{Name: "treasure"})
		a.must(err)
		ep.(*endpoint).inc = 0x1234567890abcdef // as if it had read it
		d.uid = real
		a.must(a.ep.Send(mk([]byte("secret"), a.insert(provider.Address("shm://treasure?uid="+strconv.Itoa(int(real+4242))+how)), 1)))
		if c := a.wait(&side{t: t, d: d}); !errors.Is(c.Err, provider.ErrUnreachable) || !strings.Contains(c.Err.Error(), "listens at a name of user") {
			t.Errorf("%q: %+v", how, c)
		}
		a.must(d.Close())
	}
}

// A bell is never shared with another user, who could make it block; packets ring instead, and wake who sleeps.
func TestNoBellForOtherUsers(t *testing.T) {
	a := newSide(t, anyUser(provider.Auto), provider.EndpointConfig{})
	b := newSide(t, anyUser(provider.Auto), provider.EndpointConfig{})
	b.d.core.Lock()
	b.d.uid += 4242 // a is another user to it
	b.d.core.Unlock()
	to := b.insert(a.ep.Address())
	for range 20 {
		a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
		b.must(b.ep.Send(mk(make([]byte, 8), to, 2)))
		a.good(a.wait(), provider.RecvDone, 1)
		b.good(b.wait(), provider.SendDone, 2)
	}
	for _, s := range []*side{a, b} {
		s.d.core.Lock()
		if p := s.d.pairs[0]; p.peerBell.FD != nil {
			t.Errorf("user %d has a bell of user %d", s.d.uid, p.uid)
		}
		s.d.core.Unlock()
	}
}

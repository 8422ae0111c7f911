package loop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// node is a domain with one endpoint, for tests.
type node struct {
	t    testing.TB
	d    provider.Domain
	cq   provider.CompletionQueue
	ep   provider.Endpoint
	addr provider.Address
}

// modes runs a test in both progress modes.
func modes(t *testing.T, f func(t *testing.T, p *Provider, mode provider.Progress)) {
	for _, mode := range []provider.Progress{provider.Auto, provider.Manual} {
		t.Run(mode.String(), func(t *testing.T) { f(t, New(), mode) })
	}
}

type config struct {
	dom provider.DomainConfig
	cq  provider.CQConfig
	ep  provider.EndpointConfig
}

func open(t testing.TB, p *Provider, mode provider.Progress, edit ...func(*config)) *node {
	t.Helper()
	var c config
	c.dom.Progress = mode
	for _, e := range edit {
		e(&c)
	}
	n := &node{t: t}
	var err error
	infos, _ := p.Discover(t.Context())
	if n.d, err = p.OpenDomain(infos[0], c.dom); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.d.Close(); err != nil {
			t.Error(err)
		}
	})
	if n.cq, err = n.d.OpenCompletionQueue(c.cq); err != nil {
		t.Fatal(err)
	}
	c.ep.Send, c.ep.Recv = n.cq, n.cq
	if n.ep, err = n.d.OpenEndpoint(c.ep); err != nil {
		t.Fatal(err)
	}
	n.addr = n.ep.Address()
	return n
}

func (n *node) insert(to *node) provider.Peer {
	n.t.Helper()
	p, err := n.d.Insert(to.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

// must fails the test if a post failed.
func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// wait takes one completion.
func (n *node) wait() provider.Completion {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
	defer cancel()
	var c [1]provider.Completion
	for {
		got, err := n.cq.Wait(ctx, c[:])
		if err != nil {
			n.t.Fatalf("wait: %v", err)
		}
		if got == 1 {
			return c[0]
		}
	}
}

// none checks that there is no completion now.
func (n *node) none() {
	n.t.Helper()
	var c [4]provider.Completion
	if got, err := n.cq.Read(c[:]); got != 0 || err != nil {
		n.t.Fatalf("read %d completions, %v: %+v", got, err, c[:got])
	}
}

func local(b []byte) provider.Segment { return provider.Segment{Bytes: b} }

func text(i int) []byte { return fmt.Appendf(nil, "message %d", i) }

func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

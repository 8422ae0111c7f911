package fabric_test

import (
	"testing"

	"github.com/weft-fabric/weft/fabric"
)

// sides are two domains of a provider that is linked.
func sides(t testing.TB, c fabric.DomainConfig) (domains [2]*fabric.Domain, queues [2]*fabric.CompletionQueue, ends [2]*fabric.Endpoint) {
	t.Helper()
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "loop"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		d, err := fabric.OpenDomain(infos[0], c)
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
		e, err := d.OpenEndpoint(fabric.EndpointConfig{Send: q, Recv: q})
		if err != nil {
			t.Fatal(err)
		}
		domains[i], queues[i], ends[i] = d, q, e
	}
	return domains, queues, ends
}

// From a post to its completion nothing is allocated, by the fabric or the reference.
func TestNoAllocationOverLoop(t *testing.T) {
	domains, queues, ends := sides(t, fabric.DomainConfig{Progress: fabric.Manual})
	to, err := domains[0].Insert(ends[1].Address())
	if err != nil {
		t.Fatal(err)
	}
	from, err := domains[0].Alloc(4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	into, err := domains[1].Alloc(4096, fabric.PeerRead|fabric.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	var c [4]fabric.Completion
	take := func(q *fabric.CompletionQueue, want fabric.Kind) {
		for range 1000 {
			for i := range queues {
				n, err := queues[i].Read(c[:1])
				if err != nil || n > 0 && c[0].Err != nil {
					t.Fatal(err, c[0].Err)
				}
				if n > 0 && queues[i] == q && c[0].Kind == want {
					return
				}
			}
		}
		t.Fatalf("no completion of a %v", want)
	}
	post := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, round := range map[string]func(){
		"message": func() {
			post(ends[1].Recv(fabric.Op{Local: into.Slice(0, 8)}))
			post(ends[0].Send(fabric.Op{Local: from.Slice(0, 8), Peer: to, Flags: fabric.Quiet | fabric.Inject}))
			take(queues[1], fabric.RecvDone)
		},
		"read": func() {
			post(ends[0].Read(fabric.Op{Local: from.Slice(0, 64), Peer: to, Key: into.Key(), Offset: 8}))
			take(queues[0], fabric.ReadDone)
		},
		"write": func() {
			post(ends[0].Write(fabric.Op{Local: from.Slice(0, 64), Peer: to, Key: into.Key(), Offset: 8}))
			take(queues[0], fabric.WriteDone)
		},
	} {
		for range 100 {
			round() // what is pooled is made
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("a %s allocates %v times", name, n)
		}
	}
}

func BenchmarkMessageOverLoop(b *testing.B) {
	domains, queues, ends := sides(b, fabric.DomainConfig{Progress: fabric.Manual})
	to, err := domains[0].Insert(ends[1].Address())
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 8)
	var c [4]fabric.Completion
	b.ReportAllocs()
	for b.Loop() {
		if err := ends[1].Recv(fabric.Op{Local: fabric.Bytes(buf)}); err != nil {
			b.Fatal(err)
		}
		if err := ends[0].Send(fabric.Op{Local: fabric.Bytes(buf), Peer: to, Flags: fabric.Quiet | fabric.Inject}); err != nil {
			b.Fatal(err)
		}
		for n := 0; n == 0; {
			if n, err = queues[1].Read(c[:]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

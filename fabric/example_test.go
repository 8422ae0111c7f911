package fabric_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weft-fabric/weft/fabric"
	_ "github.com/weft-fabric/weft/prov/loop" // two processes link prov/shm instead; nothing else changes
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// An echo server and its client. In two processes, main of the one is serve, of the other dial.
func Example_sockets() {
	open := func(name string) (*fabric.Domain, *fabric.CompletionQueue, *fabric.Endpoint) {
		infos, err := fabric.Discover(context.Background(), fabric.Hints{Caps: fabric.Msg | fabric.Source})
		check(err)
		d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
		check(err)
		cq, err := d.OpenCompletionQueue(fabric.CQConfig{})
		check(err)
		ep, err := d.OpenEndpoint(fabric.EndpointConfig{Name: name, Send: cq, Recv: cq}) // socket, bind, listen
		check(err)
		return d, cq, ep
	}
	// wait sleeps until one post has ended, as read and write do.
	wait := func(cq *fabric.CompletionQueue) fabric.Completion {
		var c [1]fabric.Completion
		_, err := cq.Wait(context.Background(), c[:])
		check(err)
		check(c[0].Err)
		return c[0]
	}

	server, serverCQ, serverEP := open("echo")
	defer server.Close()
	go func() {
		buf := make([]byte, 100)
		check(serverEP.Recv(fabric.Op{Local: fabric.Bytes(buf)}))
		got := wait(serverCQ) // accept and read: the message, its length, its sender
		check(serverEP.Send(fabric.Op{Local: fabric.Bytes(buf[:got.Len]), Peer: got.Source}))
		wait(serverCQ) // buf may be used again
	}()

	client, clientCQ, clientEP := open("")
	defer client.Close()
	peer, err := client.Insert(serverEP.Address()) // connect; an address is text, to be passed on as you like
	check(err)
	buf := make([]byte, 100)
	check(clientEP.Recv(fabric.Op{Local: fabric.Bytes(buf)})) // first the place for the answer
	check(clientEP.Send(fabric.Op{Local: fabric.Bytes([]byte("hello")), Peer: peer}))
	for range 2 { // the send and the receive end in any order
		if c := wait(clientCQ); c.Kind == fabric.RecvDone {
			fmt.Printf("%s\n", buf[:c.Len])
		}
	}
	// Output: hello
}

// A target exposes memory and tells its key in a tagged message; the initiator reads it. What fi_getinfo, fi_domain,
// fi_endpoint, fi_ep_bind, fi_enable, fi_av_insert, fi_mr_reg, fi_trecv, fi_read and fi_cq_sread do stands at their places.
func Example_libfabric() {
	ctx := context.Background()
	infos, err := fabric.Discover(ctx, fabric.Hints{Caps: fabric.Tagged | fabric.RMA}) // fi_getinfo
	check(err)
	open := func() (*fabric.Domain, *fabric.CompletionQueue, *fabric.Endpoint) {
		d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{Progress: fabric.Auto}) // fi_fabric, fi_domain, fi_av_open
		check(err)
		cq, err := d.OpenCompletionQueue(fabric.CQConfig{Size: 128}) // fi_cq_open, any format
		check(err)
		ep, err := d.OpenEndpoint(fabric.EndpointConfig{Send: cq, Recv: cq}) // fi_endpoint, fi_ep_bind, fi_enable
		check(err)
		return d, cq, ep
	}
	wait := func(cq *fabric.CompletionQueue) fabric.Completion { // fi_cq_sread, and fi_cq_readerr
		var c [1]fabric.Completion
		_, err := cq.Wait(ctx, c[:])
		check(err)
		check(c[0].Err)
		return c[0]
	}

	target, targetCQ, targetEP := open()
	defer target.Close()
	mem, err := target.Alloc(4096, fabric.PeerRead) // fi_mr_reg of memory that peers of the node can map
	check(err)
	copy(mem.Bytes(), "one-sided")
	initiator, cq, ep := open()
	defer initiator.Close()

	const keyTag, keyContext, readContext = 7, 1, 2
	check(ep.RecvTagged(fabric.Op{Tag: keyTag, Local: fabric.Bytes(nil), Context: keyContext})) // fi_trecv
	to, err := target.Insert(ep.Address())                                                      // fi_av_insert
	check(err)
	check(targetEP.SendTagged(fabric.Op{ // fi_tsenddata: the key fits into the 64 bits of data
		Tag: keyTag, Peer: to, Flags: fabric.RemoteData, Data: uint64(mem.Key()),
	}))
	wait(targetCQ)
	key := fabric.Key(wait(cq).Data)

	from, err := initiator.Insert(targetEP.Address())
	check(err)
	buf := make([]byte, 9)
	check(ep.Read(fabric.Op{Local: fabric.Bytes(buf), Peer: from, Key: key, Offset: 0, Context: readContext})) // fi_read
	done := wait(cq)
	fmt.Printf("%v %d: %s\n", done.Kind, done.Context, buf)
	// Output: read 2: one-sided
}

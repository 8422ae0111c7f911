// Libfabric has a target that exposes memory, and an initiator that reads it, for someone who knows libfabric. In two terminals:
//
//	go run ./examples/fabric-libfabric target NAME
//	go run ./examples/fabric-libfabric initiator NAME
//
// In place of NAME the initiator takes the address that the target prints, too; it is in quotes for the shell.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/weft-fabric/weft/fabric"
	_ "github.com/weft-fabric/weft/prov/shm"
)

// askTag and keyTag are the tags of the two messages.
const askTag, keyTag = 1, 2

func main() {
	if len(os.Args) != 3 || os.Args[1] != "target" && os.Args[1] != "initiator" {
		log.Fatal("usage: fabric-libfabric target NAME | fabric-libfabric initiator NAME|ADDRESS")
	}
	infos, err := fabric.Discover(context.Background(), fabric.Hints{Provider: "shm", Caps: fabric.Tagged | fabric.RMA}) // fi_getinfo
	if err != nil {
		log.Fatalf("no shared memory here, \"weft info -p shm\" says more: %v", err)
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{}) // fi_fabric, fi_domain, fi_av_open
	check(err)
	defer d.Close()
	cq, err := d.OpenCompletionQueue(fabric.CQConfig{}) // fi_cq_open
	check(err)
	config := fabric.EndpointConfig{Send: cq, Recv: cq} // fi_ep_bind
	if os.Args[1] == "target" {
		config.Name = os.Args[2]
	}
	ep, err := d.OpenEndpoint(config) // fi_endpoint, fi_enable
	check(err)
	if os.Args[1] == "target" {
		mem, err := d.Alloc(4096, fabric.PeerRead) // memory that peers of the node can map; fi_mr_reg is Register
		check(err)
		copy(mem.Bytes(), "one-sided")
		fmt.Printf("target at '%s'\n", ep.Address())
		for { // reads need nothing of this loop, which tells the key to whoever asks
			check(ep.RecvTagged(fabric.Op{Tag: askTag})) // fi_trecv
			c := wait(cq)                                // fi_cq_readfrom
			if c.Err == nil {
				c.Err = ep.SendTagged(fabric.Op{Tag: keyTag, Peer: c.Source, Flags: fabric.RemoteData, Data: uint64(mem.Key())})
				if c.Err == nil {
					c = wait(cq)
				}
			}
			if c.Err != nil {
				log.Print(c.Err) // of one asker, who is gone, say
			}
		}
	}
	target, err := d.Insert(address(os.Args[2])) // fi_av_insert
	check(err)
	check(ep.RecvTagged(fabric.Op{Tag: keyTag, Peer: target, Flags: fabric.Directed}))
	check(ep.SendTagged(fabric.Op{Tag: askTag, Peer: target, Flags: fabric.Quiet})) // no completion, unless it fails
	told := wait(cq)
	check(told.Err)
	key := fabric.Key(told.Data)
	buf := make([]byte, 9)
	check(ep.Read(fabric.Op{Local: fabric.Bytes(buf), Peer: target, Key: key, Offset: 0})) // fi_read
	check(wait(cq).Err)
	fmt.Printf("%s\n", buf)
}

// wait is fi_cq_sread; what fi_cq_readerr would tell is the Err of the completion.
func wait(cq *fabric.CompletionQueue) fabric.Completion {
	var c [1]fabric.Completion
	_, err := cq.Wait(context.Background(), c[:])
	check(err)
	return c[0]
}

// address makes an address of a name; one that a server has printed is one already.
func address(s string) fabric.Address {
	if !strings.HasPrefix(s, "shm://") {
		s = "shm://" + s
	}
	return fabric.Address(s)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

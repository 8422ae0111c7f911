// Sockets is an echo server and its client, for someone who knows sockets. In two terminals:
//
//	go run ./examples/fabric-sockets listen NAME
//	go run ./examples/fabric-sockets NAME TEXT
//
// In place of NAME the client takes the address that the server prints, too; it is in quotes for the shell.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/weft-fabric/weft/fabric"
	_ "github.com/weft-fabric/weft/prov/shm"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: fabric-sockets listen NAME | fabric-sockets NAME|ADDRESS TEXT")
	}
	infos, err := fabric.Discover(context.Background(), fabric.Hints{Provider: "shm"})
	if err != nil {
		log.Fatalf("no shared memory here, \"weft info -p shm\" says more: %v", err)
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
	check(err)
	defer d.Close()
	cq, err := d.OpenCompletionQueue(fabric.CQConfig{})
	check(err)
	config := fabric.EndpointConfig{Send: cq, Recv: cq}
	buf := make([]byte, 1000)
	if os.Args[1] == "listen" {
		config.Name = os.Args[2]
		ep, err := d.OpenEndpoint(config) // socket, bind, listen
		check(err)
		fmt.Printf("listening at '%s'\n", ep.Address())
		for { // a client that dies ends nothing but its own message
			check(ep.Recv(fabric.Op{Local: fabric.Bytes(buf)}))
			c := wait(cq, fabric.RecvDone)                             // accept and read: a message, its length, its sender
			if c.Err == nil || errors.Is(c.Err, fabric.ErrTruncated) { // as much as fits is in buf
				if c.Err = ep.Send(fabric.Op{Local: fabric.Bytes(buf[:c.Len]), Peer: c.Source}); c.Err == nil {
					c = wait(cq, fabric.SendDone) // buf may be used again
				}
			}
			if c.Err != nil {
				log.Print(c.Err)
			}
		}
	}
	ep, err := d.OpenEndpoint(config)
	check(err)
	server, err := d.Insert(address(os.Args[1])) // the first message connects
	check(err)
	check(ep.Recv(fabric.Op{Local: fabric.Bytes(buf), Peer: server, Flags: fabric.Directed})) // the answer; the server's death ends it
	check(ep.Send(fabric.Op{Local: fabric.Bytes([]byte(os.Args[2])), Peer: server}))
	answer := wait(cq, fabric.RecvDone)
	check(answer.Err)
	fmt.Printf("%s\n", buf[:answer.Len])
}

// wait sleeps until a post of this kind has ended, as read and write do, or any post in an error.
func wait(cq *fabric.CompletionQueue, kind fabric.Kind) fabric.Completion {
	for {
		var c [1]fabric.Completion
		_, err := cq.Wait(context.Background(), c[:])
		check(err)
		if c[0].Kind == kind || c[0].Err != nil {
			return c[0]
		}
	}
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

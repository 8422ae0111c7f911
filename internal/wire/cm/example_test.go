package cm_test

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// The contact string of an ADIOS2 writer, from its contact file.
func ExampleParseContact() {
	c, err := cm.ParseContact("AAMAAJTJ8o0TlgAAATkCmAEAAH/e55DE3CqDPg==")
	if err != nil {
		fmt.Println(err)
		return
	}
	addr, err := c.Addr()
	id, ok := c.CMID()
	fmt.Println(addr, err)
	fmt.Printf("%#x %v\n", id, ok)
	// Output:
	// 127.0.0.1:38419 <nil>
	// 0x3e832adc true
}

// What a Weft process publishes.
func ExampleNewContact() {
	c, err := cm.NewContact(netip.MustParseAddrPort("10.0.0.7:4000"), 0x1234)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.WithMark().Describe())
	// Output:
	// IP_PORT=4000 IP_ADDR=10.0.0.7 CM_CMANAGER_ID=4660 WEFT=1
}

// A record in two parts is sent without joining them.
func ExampleAppendDataVec() {
	parts := [][]byte{[]byte("format ID, "), []byte("body")}
	for _, b := range cm.AppendDataVec(nil, parts) {
		fmt.Println(len(b), "bytes")
	}
	// Output:
	// 8 bytes
	// 11 bytes
	// 4 bytes
}

// A stream is cut into units.
func ExampleReader() {
	stream := cm.Handshake{Version: cm.HandshakeVersion, FormatServer: cm.SelfHosted, ID: 77, Answer: true}.Append(nil)
	stream = cm.Push([]byte("an ID"), []byte("a body")).Append(stream)
	stream = cm.Data{Record: []byte("a record")}.Append(stream)
	r := cm.NewReader(bytes.NewReader(stream), cm.ReaderConfig{MaxRecord: 1 << 20})
	for {
		u, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		switch u := u.(type) {
		case cm.Handshake:
			fmt.Println("peer", u.ID)
		case cm.FormatMessage:
			fmt.Printf("format %q\n", u.Second)
		case cm.Data:
			fmt.Printf("record %q\n", u.Record)
		}
	}
	// Output:
	// peer 77
	// format "a body"
	// record "a record"
}

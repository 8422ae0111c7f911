package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"

	"github.com/weft-fabric/weft/fabric"
)

// Servers that answer requests, and clients that send one each and leave.
const (
	serverRole = "server"
	clientRole = "client"
)

// requestSizes are around the sizes at which providers send in another way, in bytes.
var requestSizes = []int{1024, 4064, 4096, 4097, 8192}

const (
	checksumBytes = 4
	longestTalk   = 8192 + checksumBytes
)

var errGarbled = errors.New("the checksum is another one")

// sealed is a message: bytes that begin with a number, and their checksum.
func sealed(n int, first byte) []byte {
	b := make([]byte, n+checksumBytes)
	for i := range b[:n] {
		b[i] = first + byte(i*7)
	}
	binary.LittleEndian.PutUint32(b[n:], crc32.ChecksumIEEE(b[:n]))
	return b
}

func unsealed(b []byte) ([]byte, error) {
	n := len(b) - checksumBytes
	if n < 1 || binary.LittleEndian.Uint32(b[n:]) != crc32.ChecksumIEEE(b[:n]) {
		return nil, fmt.Errorf("%d bytes: %w", len(b), errGarbled)
	}
	return b[:n], nil
}

// talker is an endpoint of shm.
type talker struct {
	d  *fabric.Domain
	cq *fabric.CompletionQueue
	ep *fabric.Endpoint
}

func newTalker(folder, name string) (t *talker, err error) {
	infos, err := fabric.Discover(context.Background(), fabric.Hints{Provider: "shm", Caps: fabric.Msg | fabric.Source})
	if err != nil {
		return nil, err
	}
	t = new(talker)
	if t.d, err = fabric.OpenDomain(infos[0], fabric.DomainConfig{Options: map[string]string{"folder": folder}}); err != nil {
		return nil, err
	}
	if t.cq, err = t.d.OpenCompletionQueue(fabric.CQConfig{}); err == nil {
		t.ep, err = t.d.OpenEndpoint(fabric.EndpointConfig{Name: name, Send: t.cq, Recv: t.cq})
	}
	if err != nil {
		return nil, errors.Join(err, t.d.Close())
	}
	return t, nil
}

func (t *talker) next(ctx context.Context) (fabric.Completion, error) {
	var c [1]fabric.Completion
	_, err := t.cq.Wait(ctx, c[:])
	return c[0], errors.Join(err, c[0].Err)
}

// runServer answers requests with what it has got, one higher, until its input ends: "FOLDER NAME". A client that has gone costs it nothing.
func runServer(args []string) (err error) {
	t, err := newTalker(args[0], args[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.d.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	request := make([]byte, longestTalk)
	if err := t.ep.Recv(fabric.Op{Local: fabric.Bytes(request)}); err != nil {
		return err
	}
	fmt.Println("READY", t.ep.Address())
	for {
		c, err := t.next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case c.Kind != fabric.RecvDone:
			continue // an answer is there, or its client is not
		case err != nil:
			return err
		}
		got, err := unsealed(request[:c.Len])
		if err != nil {
			return err
		}
		answer := sealed(len(got), got[0]+1)
		request = make([]byte, longestTalk)
		err = t.ep.Recv(fabric.Op{Local: fabric.Bytes(request)})
		if err == nil {
			err = t.ep.Send(fabric.Op{Local: fabric.Bytes(answer), Peer: c.Source})
		}
		if err != nil {
			return err
		}
	}
}

// runClient sends a request and checks the answer: "FOLDER ADDRESS SIZE FIRST".
func runClient(args []string) (err error) {
	size, err1 := strconv.Atoi(args[2])
	first, err2 := strconv.Atoi(args[3])
	t, err := newTalker(args[0], "")
	if err := errors.Join(err1, err2, err); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.d.Close()) }()
	peer, err := t.d.Insert(fabric.Address(args[1]))
	if err != nil {
		return err
	}
	answer := make([]byte, longestTalk)
	if err := t.ep.Recv(fabric.Op{Local: fabric.Bytes(answer)}); err != nil {
		return err
	}
	if err := t.ep.Send(fabric.Op{Local: fabric.Bytes(sealed(size, byte(first))), Peer: peer}); err != nil {
		return err
	}
	for range 2 {
		c, err := t.next(context.Background())
		if err != nil {
			return err
		}
		if c.Kind != fabric.RecvDone {
			continue
		}
		got, err := unsealed(answer[:c.Len])
		if err == nil && (len(got) != size || got[0] != byte(first)+1) {
			err = fmt.Errorf("%d bytes that begin with %d, not %d that begin with %d: %w", len(got), got[0], size, first+1, errGarbled)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

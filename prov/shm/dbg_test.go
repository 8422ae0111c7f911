package shm

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

func (d *domain) dump() string {
	d.core.Lock()
	defer d.core.Unlock()
	s := fmt.Sprintf("epoch %d news %v stuck %v more %v\n", d.epoch, d.news.Load(), d.stuck, d.more)
	for _, ep := range d.eps {
		for _, p := range ep.pairs {
			s += fmt.Sprintf("  pair %d msgs %d rmas %d streams %d flying %d replies %d wanting %d rung %d blocks %d lost %v", p.state, p.messages.len(), p.rmas.len(), p.streams.len(), p.flying.len(), p.replies.len(), p.wanting, p.rung, p.blocks, p.lostWhy)
			if p.state == pairUp {
				s += fmt.Sprintf(" in %v ctl %v peerarmed %d sent %d theirdone %d read %d", p.dataIn.Empty(), p.controlIn.Empty(), p.home.armed.Load(), p.controlSent, p.theirs.controlDone.Load(), p.controlRead)
			}
			s += "\n"
		}
	}
	return s
}

func TestDbg(t *testing.T) {
	a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	coll := func(s *side) chan provider.Completion {
		ch := make(chan provider.Completion, 1000)
		go func() {
			var c [8]provider.Completion
			for {
				n, err := s.cq.Wait(ctx, c[:])
				for _, x := range c[:n] {
					ch <- x
				}
				if err != nil {
					return
				}
			}
		}()
		return ch
	}
	ca, cb := coll(a), coll(b)
	get := func(ch chan provider.Completion) provider.Completion {
		select {
		case c := <-ch:
			return c
		case <-time.After(3 * time.Second):
			t.Fatalf("hang\nA %s\nB %s", a.d.dump(), b.d.dump())
		}
		panic(0)
	}
	get2 := get
	_ = get2
	done := make(chan error, 2)
	flow := func(s *side, to provider.Peer, ch chan provider.Completion) {
		sizes := []int{8, 100, 4000, 5000, 20000, 70000, 0}
		toSend, toRecv, outS, outR, sent, recvd := 0, 0, 0, 0, 0, 0
		for sent < 400 || recvd < 400 {
			for toRecv < 400 && outR < 64 {
				s.must(s.ep.Recv(recvOp(make([]byte, 70000), 2)))
				toRecv++
				outR++
			}
			for toSend < 400 && outS < 400 {
				s.must(s.ep.Send(mk(pattern(sizes[toSend%7], 1), to, 1)))
				toSend++
				outS++
			}
			select {
			case c := <-ch:
				if c.Context == 1 {
					outS--
					sent++
				} else {
					outR--
					recvd++
				}
			case <-time.After(3 * time.Second):
				done <- fmt.Errorf("hang sent %d recvd %d", sent, recvd)
				return
			}
		}
		done <- nil
	}
	go flow(a, ab, ca)
	go flow(b, ba, cb)
	if err := <-done; err != nil {
		t.Fatalf("%v\nA %s\nB %s", err, a.d.dump(), b.d.dump())
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\nA %s\nB %s", err, a.d.dump(), b.d.dump())
	}
}

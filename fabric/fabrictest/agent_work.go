package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// work carries out what moves data.
func (a *agent) work(r request, out *reply) (bool, error) {
	var err error
	switch r.Verb {
	case "post":
		err = a.post(r.EP, *r.Op)
	case "take":
		out.Done, err = a.take(r.N, time.Duration(r.Millis)*time.Millisecond)
	case "read":
		out.Done, err = a.readNow(r.N)
	case "cancel":
		if a.eps[r.EP].Cancel(r.Context) {
			out.N = 1
		}
	case "signal":
		a.q.Signal()
	case "flow":
		err = a.flow(*r.Flow, out)
	case "storm":
		err = a.startStorm(*r.Flow)
	case "stop-storm":
		a.storms.stop()
	case "join-storm":
		err = a.joinStorm(time.Duration(r.Millis)*time.Millisecond, out)
	case "spin":
		a.spins.begin(r.N)
	case "stop-spin":
		out.Base = a.spins.end()
	default:
		return false, nil
	}
	return true, err
}

func (a *agent) take(n int, limit time.Duration) ([]done, error) {
	taken, err := a.col.take(n, limit)
	return packAll(taken), err
}

// readNow calls Read once.
func (a *agent) readNow(n int) ([]done, error) {
	some := make([]provider.Completion, n)
	got, err := a.q.Read(some)
	return packAll(some[:got]), err
}

func packAll(list []provider.Completion) []done {
	var packed []done
	for _, c := range list {
		packed = append(packed, packDone(c))
	}
	return packed
}

// viewing carries out what is about views; r.Buf is the view.
func (a *agent) viewing(r request, out *reply) error {
	if r.Verb == "view" {
		ctx, cancel := context.WithTimeout(context.Background(), a.o.patience)
		defer cancel()
		v, err := a.d.View(ctx, r.Peer, r.Key, uint64(r.Off), r.N)
		if err != nil {
			return err
		}
		a.views = append(a.views, v)
		out.N = len(a.views) - 1
		if len(v.Bytes()) != r.N {
			return fmt.Errorf("a view of %d bytes has %d", r.N, len(v.Bytes()))
		}
		return nil
	}
	if r.Buf < 0 || r.Buf >= len(a.views) {
		return fmt.Errorf("view %d: %w", r.Buf, errNothing)
	}
	v := a.views[r.Buf]
	switch r.Verb {
	case "view-wrong":
		out.N = wrong(v.Bytes(), r.Seed, r.Off)
	case "view-get":
		out.Bytes = append([]byte(nil), v.Bytes()[r.Off:r.Off+r.N]...)
	case "poke":
		if faults(func() { v.Bytes()[r.Off] ^= 0xff }) {
			out.N = 1
		}
	case "crash": // the process does not survive it
		v.Bytes()[r.Off] ^= 0xff
	case "release":
		v.Release()
	}
	return nil
}

// faults reports whether do faults on memory that it may not touch.
func faults(do func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			faulted = true
		}
	}()
	do()
	return false
}

// state carries out what asks for numbers.
func (a *agent) state(r request, out *reply) (bool, error) {
	var err error
	switch r.Verb {
	case "value", "errors", "add", "set-value", "wait-value":
		err = a.counting(r, out)
	case "stats":
		s := a.d.Stats()
		out.Stats = &s
	case "peers":
		for _, p := range a.d.Peers() {
			packed := peerStats{p, pack(p.Why)}
			packed.Why = nil
			out.Peers = append(out.Peers, packed)
		}
	case "events":
		out.Text = a.events.String()
	case "usage":
		var u usage
		if u, err = measure(); err == nil {
			out.Usage = &u
		}
	case "log":
		out.Text = a.log.String()
	case "descriptors":
		err = limitDescriptors(r.N)
	case "ballast":
		a.ballast = make([]byte, r.N)
		fill(a.ballast, 1, 0)
	default:
		return false, nil
	}
	return true, err
}

// counting carries out what is about counter r.Buf.
func (a *agent) counting(r request, out *reply) error {
	c, err := a.counter(r.Buf)
	if err != nil {
		return err
	}
	switch r.Verb {
	case "value":
		out.N = int(c.Value())
	case "errors":
		out.N = int(c.Errors())
	case "add":
		c.Add(uint64(r.N))
	case "set-value":
		c.Set(uint64(r.N))
	case "wait-value":
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Millis)*time.Millisecond)
		defer cancel()
		return c.Wait(ctx, uint64(r.N))
	}
	return nil
}

// again posts until the provider takes it: as long as it says ErrAgain and progress goes on.
func (a *agent) again(n int, s opSpec) error {
	for end := time.Now().Add(a.o.patience); ; {
		err := a.post(n, s)
		if !errors.Is(err, provider.ErrAgain) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("refused for %v: %w", a.o.patience, err)
		}
		a.col.waitNews(time.Millisecond)
	}
}

package ping

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/sys"
)

// Serve is the other side of one Measure: it tells its address by calling listening, does what it is asked for, and
// returns when Measure has said that all is done. The death of the other side is an error that names it.
func Serve(ctx context.Context, c Config, listening func(fabric.Address) error) (err error) {
	e, err := open(ctx, c, fabric.Tagged)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.listen(ctx); err != nil {
		return err
	}
	if err := listening(e.ep.Address()); err != nil {
		return err
	}
	err = e.reason(ctx, e.serve(ctx))
	if err != nil {
		e.lastWord(ctx, done, err)
	}
	return err
}

// OfOther says whether an error of Serve or Measure came from the other side, which can tell more.
func OfOther(err error) bool {
	return errors.Is(err, fabric.ErrPeerGone) || errors.Is(err, errNo)
}

// serve does jobs until the other side says bye.
func (e *end) serve(ctx context.Context) error {
	e.watch.wait(func() string { return fmt.Sprintf("a weft ping --connect '%s'", e.ep.Address()) })
	if _, err := e.hear(ctx, hello); err != nil {
		return err
	}
	if err := e.say(ctx, control{Verb: welcome}); err != nil {
		return err
	}
	for {
		e.watch.wait(func() string { return fmt.Sprintf("%s to say what is next", e.address) })
		c, err := e.hear(ctx, setJob, bye)
		if err != nil || c.Verb == bye {
			return err
		}
		if err := e.serveJob(ctx, *c.Job, c.Key); err != nil {
			return err
		}
	}
}

// serveJob does one phase.
func (e *end) serveJob(ctx context.Context, j job, key fabric.Key) (err error) {
	if want := j.Op.caps(); !e.info.Caps.Has(want) {
		return errors.Join(fabric.ErrNotSupported, errors.New("ping: "+e.info.Provider+" does not offer "+(want&^e.info.Caps).String()))
	}
	e.watch.wait(func() string { return fmt.Sprintf("%s, in %s", e.address, j.text()) })
	r, err := newRun(ctx, e, j, true)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil { // else receives may be posted in its memory: the domain's Close ends both, in this order
			err = r.close()
		}
	}()
	r.key = key
	work, check := r.service()
	if work != nil {
		if err := r.armFirst(ctx); err != nil {
			return err
		}
	}
	if err := e.say(ctx, control{Verb: ready, Key: r.exposed()}); err != nil {
		return err
	}
	before := sys.ProcessorTime()
	if work != nil {
		if err := work(ctx); err != nil {
			return err
		}
	}
	if _, err := e.hear(ctx, endJob); err != nil {
		return err
	}
	end := control{Verb: done, CPU: (sys.ProcessorTime() - before).Seconds()}
	if e.config.Inside {
		end.CPU = 0
	}
	if check != nil {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return e.say(ctx, end)
}

// service is what this side does in the phase, and what it checks at its end. Both may be nil: the other
// side reads and writes without it.
func (r *run) service() (work func(context.Context) error, check func(context.Context) error) {
	switch {
	case r.Phase == Latency && r.Op.echoes():
		return r.echo, nil
	case r.Op == Write:
		return nil, r.checkIn
	case r.Op == Message || r.Op == Tagged:
		return r.sink, r.checkIn
	}
	return nil, nil
}

package ping

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/sys"
)

// Measure does the work with the side that serves at an address, and calls each with the result of
// each size, in order; an error of it ends the work. The death of the other side is an error that
// names it (fabric.ErrPeerGone).
func Measure(ctx context.Context, c Config, w Work, to fabric.Address, each func(Result) error) (err error) {
	w, err = w.resolve()
	if err != nil {
		return err
	}
	e, err := open(ctx, c, w.Op.caps())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(e.reason(ctx, err), e.close()) }()
	if err := e.greet(ctx, to); err != nil {
		return err
	}
	if c.Begun != nil {
		if err := c.Begun(); err != nil {
			return err
		}
	}
	for _, size := range w.Sizes {
		r, err := e.size(ctx, w, size)
		if err != nil {
			if errors.Is(err, ErrData) || ctx.Err() != nil {
				e.lastWord(ctx, bye, err) // the other side has nothing to be sorry for: it gets a reason
			}
			return err
		}
		if err := each(r); err != nil {
			return err
		}
	}
	if err := e.say(ctx, control{Verb: bye}); !errors.Is(err, fabric.ErrPeerGone) {
		return err
	}
	return nil // it has heard that, and left; or else nothing was left to do
}

// greet connects.
func (e *end) greet(ctx context.Context, to fabric.Address) (err error) {
	if e.peer, err = e.domain.Insert(to); err != nil {
		return asSetting(err)
	}
	e.address = to
	e.watch.wait(func() string { return fmt.Sprintf("a weft ping --listen to answer at %s", to) })
	if err := e.listen(ctx); err != nil {
		return err
	}
	if err := e.say(ctx, control{Verb: hello, Version: version, Pin: e.config.Pin, Address: e.ep.Address()}); err != nil {
		return err
	}
	_, err = e.hear(ctx, welcome)
	return err
}

// size measures one size.
func (e *end) size(ctx context.Context, w Work, size int) (Result, error) {
	res := Result{Provider: e.info.Provider, Op: w.Op, Size: size, Iters: w.iters(size), PauseUS: float64(w.Pause.Nanoseconds()) / 1e3}
	if w.Only != Rate {
		m, err := e.phase(ctx, newJob(w, Latency, size))
		if err != nil {
			return Result{}, err
		}
		share, transfers := 1.0, res.Iters
		if w.Op.echoes() {
			share, transfers = 0.5, 2*res.Iters
		}
		res.rates(transfers, m.took) // unless there is a better one below
		res.Latency = distribution(m.samples, share)
		res.CPU.add(m.cpu)
	}
	if w.Only != Latency {
		m, err := e.phase(ctx, newJob(w, Rate, size))
		if err != nil {
			return Result{}, err
		}
		res.rates(res.Iters, m.took)
		res.CPU.add(m.cpu)
	}
	return res, nil
}

// add adds; the kernel counts in microseconds.
func (c *CPU) add(d CPU) {
	c.Local = math.Round((c.Local+d.Local)*1e6) / 1e6
	c.Peer = math.Round((c.Peer+d.Peer)*1e6) / 1e6
}

// measured is what a phase gave.
type measured struct {
	samples []int64       // of the latency phase: nanoseconds of each operation, or round trip
	took    time.Duration // all that count
	cpu     CPU
}

// phase runs one phase with the other side.
func (e *end) phase(ctx context.Context, j job) (m measured, err error) {
	e.watch.wait(func() string { return fmt.Sprintf("%s, in %s", e.address, j.text()) })
	r, err := newRun(ctx, e, j, false)
	if err != nil {
		return m, err
	}
	defer func() {
		if err == nil { // else receives may be posted in its memory: the domain's Close ends both, in this order
			err = r.close()
		}
	}()
	if r.Phase == Latency && r.Op.echoes() {
		if err := r.armFirst(ctx); err != nil {
			return m, err
		}
	}
	if err := e.say(ctx, control{Verb: setJob, Job: &j, Key: r.exposed()}); err != nil {
		return m, err
	}
	e.watch.wait(func() string { return fmt.Sprintf("%s to prepare %s", e.address, j.text()) })
	answer, err := e.hear(ctx, ready)
	if err != nil {
		return m, err
	}
	r.key = answer.Key
	e.watch.wait(func() string { return fmt.Sprintf("%s, in %s", e.address, j.text()) })
	before := sys.ProcessorTime()
	if m, err = r.measure(ctx); err != nil {
		return m, err
	}
	if err := e.say(ctx, control{Verb: endJob}); err != nil {
		return m, err
	}
	e.watch.wait(func() string { return fmt.Sprintf("%s to compare what came in %s", e.address, j.text()) })
	end, err := e.hear(ctx, done)
	if err != nil {
		return m, err
	}
	m.cpu = CPU{Local: (sys.ProcessorTime() - before).Seconds(), Peer: end.CPU}
	return m, nil
}

// measure does the operations.
func (r *run) measure(ctx context.Context) (measured, error) {
	switch {
	case r.Phase == Latency && r.Op.echoes():
		return r.latency(ctx, r.roundTrip, r.checkIn)
	case r.Phase == Latency && r.Op == Read:
		return r.latency(ctx, r.readOne, r.checkRead)
	case r.Phase == Latency:
		return r.latency(ctx, r.viewOne, nil)
	case r.Op == Read:
		return r.rate(ctx, r.readNext, func() error { return r.checkRead(ctx) })
	case r.Op == View:
		return r.viewRate(ctx)
	case r.Op == Write:
		return r.rate(ctx, r.send, nil)
	}
	return r.rate(ctx, r.send, func() error {
		_, err := r.hear(ctx, allHere)
		return err
	})
}

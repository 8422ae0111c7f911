package cohort

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// place is where rank 0 may be found.
type place struct {
	addrs []string  // "host:port"; rank 0 answers at one of them at least
	id    *cohortID // of the cohort, if known: whoever else answers is passed over
	token string
	from  string // how we know, in words
	old   bool   // it may be of a cohort that is no more
}

// finder returns where to look for rank 0; it is asked again after each attempt
// that failed. It may wait until ctx ends, and notes why meanwhile.
type finder func(ctx context.Context, note func(error)) (place, error)

// fixed is the finder of who was told.
func (c TCPConfig) fixed(context.Context, func(error)) (place, error) {
	if _, _, err := net.SplitHostPort(c.Root); err != nil {
		return place{}, fmt.Errorf("%w: Root %q of rank %d: %w", ErrConfig, c.Root, c.Rank, err)
	}
	return place{addrs: []string{c.Root}, token: c.Token, from: c.Root}, nil
}

// dialer is a rank that is not 0 while its cohort forms.
type dialer struct {
	t    *tcpRank
	find finder
	at   string // where rank 0 is looked for, in words

	mu      sync.Mutex
	last    error // of the last attempt
	met     bool  // connected: the others are waited for
	refused bool  // by somebody, and that was logged
}

// dial connects a rank that is not 0, and waits until all others are connected. at
// says in words where rank 0 is looked for.
func dial(ctx context.Context, c TCPConfig, at string, find finder) (Cohort, error) {
	d := &dialer{t: newTCP(c), find: find, at: at}
	explain := time.AfterFunc(c.explainAfter, func() { d.explain(ctx) })
	defer explain.Stop()
	err := d.join(ctx)
	if err != nil {
		d.t.quit(err.Error())
		return nil, err
	}
	return d.t, nil
}

// explain says what is waited for.
func (d *dialer) explain(ctx context.Context) {
	d.mu.Lock()
	last, met := d.last, d.met
	d.mu.Unlock()
	log := d.t.config.Logger.With("rank", d.t.rank, "of", d.t.size, "until", deadline(ctx))
	if met { // rank 0 warns; that each of its ranks does as well would bury it
		log.Debug("cohort: connected to rank 0, which waits for other ranks")
		return
	}
	args := []any{"at", d.at}
	if last != nil {
		args = append(args, "last attempt", last)
	}
	log.Warn("cohort: waits for rank 0 to answer", args...)
}

// join finds rank 0, proves that it belongs there, and waits for the start.
func (d *dialer) join(ctx context.Context) error {
	conn, err := d.reach(ctx)
	if err != nil {
		return fmt.Errorf("cohort: rank %d of %d does not reach rank 0: %w", d.t.rank, d.t.size, err)
	}
	if !d.t.launch(conn, 0) {
		_ = conn.Close()
		return ErrClosed
	}
	d.t.config.Logger.Debug("cohort: connected to rank 0", "rank", d.t.rank, "of", d.t.size, "at", conn.RemoteAddr())
	d.mu.Lock()
	d.met = true
	d.mu.Unlock()
	select {
	case <-d.t.started:
		return nil
	case err := <-d.t.failed:
		return fmt.Errorf("cohort of %d ranks does not form: %w", d.t.size, err)
	case <-ctx.Done():
		return fmt.Errorf("cohort: rank %d of %d is connected to rank 0, but others are missing there: %w", d.t.rank, d.t.size, context.Cause(ctx))
	}
}

// reach tries until a connection is through the handshake. What may pass by is
// tried again; a refusal by rank 0 itself does not pass.
func (d *dialer) reach(ctx context.Context) (net.Conn, error) {
	for delay := 20 * time.Millisecond; ; delay = min(2*delay, 250*time.Millisecond) {
		p, err := d.find(ctx, d.failed)
		if err != nil {
			return nil, d.withLast(err)
		}
		conn, err := d.knock(ctx, p)
		if err == nil || isFinal(err, p) {
			return conn, err
		}
		d.failed(err)
		if err := tcp.Pause(ctx, delay); err != nil {
			return nil, d.withLast(fmt.Errorf("%s: %w", p.from, err))
		}
	}
}

// failed notes an attempt that came to nothing. A refusal that may pass by is told
// at its first, and not only when the time is up: it may be a wrong token.
func (d *dialer) failed(err error) {
	d.mu.Lock()
	d.last = err
	_, refused := errors.AsType[*refusal](err)
	first := refused && !d.refused
	d.refused = d.refused || refused
	d.mu.Unlock()
	if first {
		d.t.config.Logger.Info("cohort: refused, and goes on looking for rank 0", "rank", d.t.rank, "of", d.t.size, "at", d.at, "err", err)
	}
}

// withLast adds what the last attempt met.
func (d *dialer) withLast(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return err
	}
	return fmt.Errorf("%w (last attempt: %w)", err, d.last)
}

// refusal is the end of a handshake that no other attempt will change.
type refusal struct {
	proven bool // said by somebody who has our token
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// isFinal reports whether another attempt is of no use. Where the place may be out
// of date, only who has our token can end the search.
func isFinal(err error, p place) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.proven || !p.old)
}

// caller is a connection that was greeted.
type caller struct {
	conn net.Conn
	greeting
	err error
}

// knock makes one attempt at a place.
func (d *dialer) knock(ctx context.Context, p place) (net.Conn, error) {
	c, err := d.t.config.callAll(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := d.prove(ctx, c, p.token); err != nil {
		_ = c.conn.Close()
		return nil, fmt.Errorf("%v: %w", c.conn.RemoteAddr(), err)
	}
	return c.conn, nil
}

// stagger is how much later each address of a place is dialled than the one before
// it: most ranks need the first only, and a thousand of them need not knock on
// every door of rank 0.
const stagger = 50 * time.Millisecond

// callAll dials all addresses of a place and returns the first where the right one
// greets. Where another was reached as well, somebody looked in and left.
func (c *TCPConfig) callAll(ctx context.Context, p place) (*caller, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan caller, len(p.addrs))
	for i, addr := range p.addrs {
		go func() {
			if err := tcp.Pause(ctx, time.Duration(i)*stagger); err != nil {
				answers <- caller{err: fmt.Errorf("%s: %w", addr, err)}
				return
			}
			answers <- c.call(ctx, addr, p.id)
		}()
	}
	var won *caller
	var errs []error
	for range p.addrs {
		switch a := <-answers; {
		case a.err != nil:
			errs = append(errs, a.err)
		case won == nil:
			won = &a
			cancel() // the rest end at once
		default:
			_ = a.conn.Close()
		}
	}
	if won == nil {
		return nil, joinAttempts(errs)
	}
	return won, nil
}

// joinAttempts puts several errors on one line.
func joinAttempts(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// call dials an address and hears the greeting.
func (c *TCPConfig) call(ctx context.Context, addr string, want *cohortID) caller {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return caller{err: err}
	}
	c.tune(conn)
	release := tcp.EndWith(ctx, conn)
	g, err := hear(conn)
	err = release(err)
	if err == nil && want != nil && g.id != *want {
		err = fmt.Errorf("%w: cohort %v answers, not %v", ErrRefused, g.id, *want)
	}
	if err != nil {
		_ = conn.Close()
		return caller{err: fmt.Errorf("%s: %w", addr, err)}
	}
	return caller{conn: conn, greeting: g}
}

// hear reads a greeting. Who greets otherwise is not rank 0 of a cohort.
func hear(conn net.Conn) (greeting, error) {
	var b [greetingLen]byte
	err := readChecked(conn, b[:])
	if errors.Is(err, ErrProtocol) {
		return greeting{}, &refusal{err: fmt.Errorf("%w: what answers is not rank 0 of a cohort: %w", ErrRefused, err)}
	}
	if err != nil {
		return greeting{}, err
	}
	return parseGreeting(b[:])
}

// prove is the rest of the handshake, on the side of a rank that is not 0.
func (d *dialer) prove(ctx context.Context, c *caller, token string) error {
	ctx, cancel := context.WithTimeout(ctx, d.t.config.HandshakeTimeout)
	defer cancel()
	release := tcp.EndWith(ctx, c.conn)
	ex := exchange{token: token, greeting: c.greeting, claim: claim{
		rank:  uint32(d.t.rank),
		size:  uint32(d.t.size),
		nonce: newNonce(),
	}}
	ex.claim.mac = ex.claimProof()
	_, err := c.conn.Write(ex.claim.append(nil))
	var v verdict
	if err == nil {
		v, err = readVerdict(c.conn)
	}
	if err := release(err); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return d.believe(&ex, &v)
}

// believe returns nil if a verdict is a welcome, and right.
func (d *dialer) believe(ex *exchange, v *verdict) error {
	switch {
	case v.code == verdictToken:
		// Nobody with another token can prove that he says this. It is as good as a
		// closed connection.
		return &refusal{err: fmt.Errorf("%w: rank 0 has another token than rank %d", ErrRefused, d.t.rank)}
	case !same(v.mac, ex.verdictProof(v)):
		return &refusal{err: fmt.Errorf("%w: what answers cannot prove that it has the token of rank %d", ErrRefused, d.t.rank)}
	case v.code != verdictWelcome:
		return &refusal{proven: true, err: fmt.Errorf("%w by rank 0: %s", ErrRefused, v.text)}
	}
	return nil
}

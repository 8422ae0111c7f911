package cohort

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// gatherer is rank 0 while its cohort forms.
type gatherer struct {
	t        *tcpRank
	listener net.Listener
	id       cohortID
	ctx      context.Context // ends with the gathering
	wg       sync.WaitGroup
	complete chan struct{} // closed when all ranks are there

	mu      sync.Mutex // never held together with the hub's
	greeted []net.Conn // being greeted, oldest first
	refused int
	last    error // of refused
}

// gather waits at a listener, which it owns, until all ranks are connected.
// complete is called when they are, before they are told.
func gather(ctx context.Context, c TCPConfig, l net.Listener, id cohortID, complete func()) (Cohort, error) {
	ctx, cancel := context.WithCancel(ctx)
	g := &gatherer{t: newTCP(c), listener: l, id: id, ctx: ctx, complete: make(chan struct{})}
	g.wg.Go(g.acceptLoop)
	err := g.wait()
	cancel()
	_ = l.Close()
	g.dismiss()
	g.wg.Wait()
	if complete != nil {
		complete()
	}
	if err == nil {
		err = g.begin()
	}
	if err != nil {
		g.t.quit(err.Error())
		return nil, err
	}
	return g.t, nil
}

// begin tells all ranks that all are there.
func (g *gatherer) begin() error {
	t := g.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.forming {
		return <-t.failed
	}
	t.forming = false
	t.spread(frame{kind: frameStart})
	return nil
}

// wait waits until the cohort is complete or cannot be.
func (g *gatherer) wait() error {
	explain := time.NewTimer(g.t.config.explainAfter)
	defer explain.Stop()
	for {
		select {
		case <-g.complete:
			return nil
		case err := <-g.t.failed:
			return fmt.Errorf("cohort of %d ranks does not form: %w", g.t.size, err)
		case <-g.ctx.Done():
			return fmt.Errorf("cohort: rank 0 at %v waited for %s: %w%s",
				g.listener.Addr(), g.missing(), context.Cause(g.ctx), g.refusals())
		case <-explain.C:
			args := []any{"missing", g.missing(), "at", g.listener.Addr(), "until", deadline(g.ctx)}
			if r := g.refusals(); r != "" {
				args = append(args, "refused", strings.Trim(r, " ()"))
			}
			g.t.config.Logger.Warn("cohort: rank 0 waits for other ranks to connect", args...)
		}
	}
}

// deadline says in words how long a wait goes on.
func deadline(ctx context.Context) string {
	if at, ok := ctx.Deadline(); ok {
		return "for another " + time.Until(at).Round(time.Second).String()
	}
	return "they come"
}

// missing names the ranks that are not there.
func (g *gatherer) missing() string {
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	var list []string
	more := 0
	for rank := 1; rank < g.t.size; rank++ {
		if g.t.links[rank] != nil {
			continue
		}
		if len(list) < 16 {
			list = append(list, fmt.Sprint(rank))
		} else {
			more++
		}
	}
	text := "rank " + strings.Join(list, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return fmt.Sprintf("%s of %d", text, g.t.size)
}

// refusals says how many were turned away, if any.
func (g *gatherer) refusals() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d connections were refused, the last: %v)", g.refused, g.last)
}

// acceptLoop takes in whoever connects.
func (g *gatherer) acceptLoop() {
	tcp.Accept(g.ctx, g.listener.Accept, g.receive, func(err error, retry time.Duration) {
		g.t.config.Logger.Warn("cohort: rank 0 cannot accept", "err", err, "retry", retry)
	})
}

// receive greets a connection.
func (g *gatherer) receive(conn net.Conn) {
	if g.enroll(conn) {
		g.wg.Go(func() { g.greet(conn) })
	}
}

// enroll notes a connection that is to be greeted. If there are too many, the
// oldest has to go: a rank is done in milliseconds and tries again if need be,
// while strangers that say nothing must not keep ranks out.
func (g *gatherer) enroll(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		_ = conn.Close()
		return false
	}
	g.greeted = append(g.greeted, conn)
	if len(g.greeted) > 128+2*g.t.size {
		_ = g.greeted[0].Close()
		g.greeted = g.greeted[1:]
	}
	return true
}

// release takes a connection off the list.
func (g *gatherer) release(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.greeted, conn); i >= 0 {
		g.greeted = slices.Delete(g.greeted, i, i+1)
	}
}

// dismiss ends all greetings.
func (g *gatherer) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.greeted {
		_ = conn.Close()
	}
}

// greet makes a link out of an accepted connection, or closes it.
func (g *gatherer) greet(conn net.Conn) {
	g.t.config.tune(conn)
	rank, err := g.admit(conn)
	g.release(conn)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	switch {
	case err == nil && g.t.launch(conn, rank):
		g.count()
		return
	case rank > 0:
		g.vacate(rank)
	}
	_ = conn.Close()
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || g.ctx.Err() != nil {
		return // somebody looked in: a rank that tries several addresses, a port scan
	}
	g.mu.Lock()
	g.refused++
	g.last = fmt.Errorf("%v: %w", conn.RemoteAddr(), err)
	g.mu.Unlock()
	g.t.config.Logger.Warn("cohort: rank 0 refused a connection", "peer", conn.RemoteAddr(), "err", err)
}

// count notes that one more rank is there.
func (g *gatherer) count() {
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	for rank := 1; rank < g.t.size; rank++ {
		if g.t.links[rank] == nil {
			return
		}
	}
	select {
	case <-g.complete:
	default:
		close(g.complete)
	}
}

// admit is the handshake on the side of rank 0. The rank that it returns, if not
// 0, is reserved for the connection, also if there is an error.
func (g *gatherer) admit(conn net.Conn) (int, error) {
	// Errors mean that the connection is gone already.
	_ = conn.SetDeadline(time.Now().Add(g.t.config.HandshakeTimeout))
	ex := exchange{token: g.t.config.Token, greeting: greeting{id: g.id, nonce: newNonce()}}
	if _, err := conn.Write(ex.append(nil)); err != nil {
		return 0, err
	}
	var b [claimLen]byte
	if err := readChecked(conn, b[:]); err != nil {
		return 0, err
	}
	claim, err := parseClaim(b[:])
	if err != nil {
		return 0, err
	}
	ex.claim = claim
	rank, v := g.judge(&ex)
	v.mac = ex.verdictProof(&v)
	if _, err := conn.Write(v.append(nil)); err != nil {
		return rank, err
	}
	if v.code != verdictWelcome {
		return 0, fmt.Errorf("%w: %s", ErrRefused, v.text)
	}
	return rank, nil
}

// readChecked reads a message that begins with the magic, and stops as soon as it
// does not: who speaks another protocol need not be waited for.
func readChecked(conn net.Conn, b []byte) error {
	n := len(magic)
	if _, err := io.ReadFull(conn, b[:n]); err != nil {
		return err
	}
	if _, err := cutMagic(b[:n], n); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, b[n:]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// judge decides about a claim. A rank that is welcome is reserved. Nobody without
// the token learns more than that.
func (g *gatherer) judge(ex *exchange) (int, verdict) {
	if !same(ex.claim.mac, ex.claimProof()) {
		return 0, verdict{code: verdictToken, text: "another token than that of rank 0"}
	}
	if int64(ex.claim.size) != int64(g.t.size) {
		return 0, verdict{code: verdictSize, text: fmt.Sprintf("rank %d thinks that there are %d ranks; rank 0 knows of %d", ex.claim.rank, ex.claim.size, g.t.size)}
	}
	if ex.claim.rank == 0 || ex.claim.rank >= ex.claim.size {
		return 0, verdict{code: verdictRank, text: fmt.Sprintf("rank %d of %d cannot join", ex.claim.rank, ex.claim.size)}
	}
	rank := int(ex.claim.rank)
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	if l, taken := g.t.links[rank]; taken {
		text := fmt.Sprintf("rank %d is there already", rank)
		if l != nil {
			text += fmt.Sprintf(", from %v", l.conn.RemoteAddr())
		}
		return 0, verdict{code: verdictRank, text: text}
	}
	g.t.links[rank] = nil // reserved
	return rank, verdict{code: verdictWelcome}
}

// vacate gives a reserved rank back.
func (g *gatherer) vacate(rank int) {
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	if g.t.links[rank] == nil {
		delete(g.t.links, rank)
	}
}

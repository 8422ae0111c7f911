package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/ping"
)

// pingPeerName is the hidden command that ping starts itself as.
const pingPeerName = "ping-peer"

func newPingPeer(env Env) *cobra.Command {
	var opt pingSide
	cmd := &cobra.Command{
		Use:    pingPeerName,
		Short:  "Part of weft ping",
		Hidden: true,
		Args:   names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opt.config()
			if err != nil {
				return err
			}
			ctx := untilEOF(cmd.Context(), env.Stdin)
			err = ping.Serve(ctx, c, func(a fabric.Address) error {
				_, err := fmt.Fprintln(env.Stdout, a)
				return err
			})
			if err != nil && (ctx.Err() != nil || ping.OfOther(err)) {
				return errReported // the parent tells
			}
			return err
		},
	}
	opt.flags(cmd)
	return cmd
}

// pingProcess starts a peer process, by way of start, and measures with it.
func pingProcess(ctx context.Context, env Env, opt *pingOptions, start func(func() error) error, c ping.Config, w ping.Work, out *pingOutput) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	said, saying := io.Pipe()
	defer said.Close()
	var peer *child
	if err := start(func() (err error) {
		peer, err = startChild(ctx, env, opt.args(), saying)
		return err
	}); err != nil {
		return err
	}
	addr, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		cancel(err)
		if err := peer.wait(); err != nil {
			return fmt.Errorf("the peer process: %w", err)
		}
		return errNoPeer
	}
	go func() { // a peer that has died ends the waiting for it, whatever the provider does
		if err := peer.wait(); err != nil {
			cancel(errPeerDied{err})
		}
	}()
	out.peer = peer.pid()
	err = ping.Measure(ctx, c, w, fabric.Address(strings.TrimSpace(addr)), out.result)
	if err != nil {
		if ping.OfOther(err) {
			// Its process may have more to tell, if it has ended.
			err = errors.Join(err, peer.within(time.Second))
		}
		cancel(err)
		_ = peer.wait() // it ends because of this side
		// What a dead peer has cancelled is no interruption: nobody has sent a signal.
		if died, ok := errors.AsType[errPeerDied](context.Cause(ctx)); ok && (errors.Is(err, died) || errors.Is(err, context.Canceled)) {
			return died
		}
		return err
	}
	defer time.AfterFunc(childGrace, func() { cancel(nil) }).Stop()
	return peer.wait()
}

// errPeerDied is how the peer process ended.
type errPeerDied struct{ err error }

func (e errPeerDied) Error() string { return "the peer process died: " + e.err.Error() }
func (e errPeerDied) Unwrap() error { return e.err }

// within is wait, with a bound; nil after it.
func (c *child) within(d time.Duration) error {
	select {
	case <-c.done:
		return c.err
	case <-time.After(d):
		return nil
	}
}

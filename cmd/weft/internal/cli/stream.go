package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// streamSource is a live stream.
type streamSource struct {
	*sst.Reader
	log     *slog.Logger
	session *sst.Session
	own     bool
	timeout time.Duration
}

// handshakeGrace is how long an opening that was given up is finished. A
// simulation answers in its next EndStep, which may be hours away; who does not
// want to wait presses Ctrl-C again, and has been told of the risk.
const handshakeGrace = 24 * time.Hour

// openStream attaches to a stream.
func openStream(ctx context.Context, log *slog.Logger, name string, opt sourceOptions) (source, error) {
	if err := opt.observe.check(name); err != nil {
		return nil, err
	}
	s := &streamSource{log: log, session: opt.session, timeout: opt.timeout}
	if s.session == nil {
		session, err := newSession(ctx, log, iface(opt.params))
		if err != nil {
			return nil, err
		}
		s.session, s.own = session, true
	}
	params := opt.params
	if opt.timeout > 0 && params.OpenTimeoutSecs == 0 {
		params.OpenTimeoutSecs = max(1, int((opt.timeout+time.Second-1)/time.Second))
	}
	cfg := sourceConfig(s.session, name, params, opt)
	cfg.FailStale = params.OpenTimeoutSecs == 0 && !opt.follow // what is not there is not waited for unless somebody says so
	r, err := sst.Open(ctx, name, cfg)
	if errors.Is(err, sst.ErrStale) && cfg.FailStale {
		err = fmt.Errorf("%w; --timeout waits for a new writer", err)
	}
	if err != nil {
		return nil, errors.Join(err, s.closeSession(true))
	}
	s.Reader = r
	return s, nil
}

func (s *streamSource) Next(ctx context.Context) (*step.Step, error) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, errNoStep)
		defer cancel()
	}
	if s.Info().Observer {
		defer time.AfterFunc(observerPatience, s.explainObserving).Stop()
	}
	return s.BeginStep(ctx)
}

// observerPatience is how long an observer waits before it says why.
const observerPatience = 3 * time.Second

func (s *streamSource) explainObserving() {
	s.log.Warn("no step yet; if the writer waits for readers, this one does not count: weft stat tells, --observe=false attaches as a reader")
}

func (s *streamSource) Ranks() int { return max(1, s.Info().Ranks) }

func (s *streamSource) Live() bool { return true }

func (s *streamSource) Close() error {
	return errors.Join(s.Reader.Close(), s.closeSession(false))
}

// closeSession ends the session if it is ours.
func (s *streamSource) closeSession(opening bool) error {
	if !s.own {
		return nil
	}
	return closeSession(s.session, s.log, opening)
}

// closeSession closes a session. After an opening that was given up that may
// take a while: a real writer hangs or crashes when a reader leaves in the
// middle, so the opening is finished first. Users have to know that before they
// press Ctrl-C again, which is at once.
func closeSession(session *sst.Session, log *slog.Logger, opening bool) error {
	if opening {
		const noTime = 20 * time.Millisecond // openings that had not begun, or need no more than an answer
		t := time.AfterFunc(noTime, func() {
			log.Warn("finishing the handshake with the writer first: leaving now can HANG OR CRASH an ADIOS2 writer. Ctrl-C after one second leaves all the same")
		})
		defer t.Stop()
	}
	return session.Close()
}

func (s *streamSource) Describe() []string {
	i := s.Info()
	as := "reader"
	if i.Observer {
		as = "observer: the writer does not wait for it"
	}
	lines := []string{
		"  of writers:    " + fmt.Sprint(i.Ranks),
		"  writer:        " + i.Writer + " " + i.Release,
		"  data plane:    " + planeText(i.Plane),
		"  carrier:       " + carrierText(i.Carrier),
		"  routes:        " + routesText(i.Writers),
	}
	if i.PlaneWhy != "" {
		lines = append(lines, "  not all since: "+printable(i.PlaneWhy))
	}
	return append(lines, "  array order:   "+order(i.ColumnMajor), "  attached as:   "+as)
}

// carrierText explains over what messages about steps come.
func carrierText(carrier string) string {
	switch carrier {
	case "":
		return "rank 0"
	case "tcp":
		return "socket (tcp)"
	}
	return "shared memory (" + carrier + ")"
}

// routesText sums up how the data of the writer's ranks come.
func routesText(ranks []sst.WriterRank) string {
	shared := 0
	for _, w := range ranks {
		if w.Route != "tcp" {
			shared++
		}
	}
	return fmt.Sprintf("memory of %d of %s", shared, plural(len(ranks), "writer rank"))
}

// planeText explains data planes, which are separated by commas: evpath is ADIOS2's name
// of plain sockets.
func planeText(planes string) string {
	list := strings.Split(planes, ",")
	for i, plane := range list {
		switch plane {
		case "evpath":
			list[i] = "sockets (evpath)"
		case "native":
			list[i] = "shared memory (native)"
		case "mixed":
			list[i] = "shared memory, to some ranks sockets (mixed)"
		}
	}
	return strings.Join(list, " or ")
}

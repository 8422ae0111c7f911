package sst

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/step"
)

// pollInterval is how often a missing contact file is looked for: file systems
// that clusters share offer no event. ADIOS2 polls as often.
const pollInterval = 100 * time.Millisecond

// Open attaches to a stream by name, with or without the suffix ".sst". It
// waits for the contact file, for a live writer behind it, and for the writer's
// answer, which a real writer gives inside its own Open or EndStep; all of that
// within OpenTimeoutSecs.
//
// If ctx ends or the time is up after the reader has registered, Open returns
// at once, but the handshake is finished in the background: an ADIOS2 writer
// hangs or crashes otherwise. A program that wants to exit then should use a
// [Session] of its own and close it, which waits.
func Open(ctx context.Context, name string, cfg ReaderConfig) (*Reader, error) {
	var err error
	cfg.Params, err = cfg.Params.resolve(readerSide)
	if err != nil {
		return nil, &Error{Op: "open", Stream: name, Err: err}
	}
	limit := cfg.Params.openTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %v (OpenTimeoutSecs)", ErrTimeout, limit))
	defer cancel()
	for first := true; ; first = false {
		r := &Reader{name: name, cfg: cfg, opened: make(chan error, 1), taking: make(chan struct{}, 1)}
		if err = r.open(ctx); err == nil {
			return r, nil
		}
		if !errors.Is(err, cp.ErrTooLate) {
			return nil, &Error{Op: "open", Stream: name, Peer: r.peer(), Err: err}
		}
		if first {
			defer explain(ctx, r.session.log, func() (string, []any) {
				return "the writer ends as we come; looking for another", []any{"stream", name, "within", limit}
			})()
		}
		select {
		case <-time.After(pollInterval): // the contact file may be about to change
		case <-ctx.Done():
			return nil, &Error{Op: "open", Stream: name, Peer: r.peer(), Err: fmt.Errorf("%w: %w: %w", ErrStale, err, context.Cause(ctx))}
		}
	}
}

// open tries once.
func (r *Reader) open(ctx context.Context) error {
	path, err := streamPath(r.name)
	if err != nil {
		return err
	}
	r.session, r.own, err = sessionFor(ctx, r.cfg.Session, r.cfg.Params)
	if err != nil {
		return err
	}
	f := &finder{path: path, session: r.session}
	err = f.find(ctx)
	if err == nil {
		err = r.shakeHands(ctx, f)
	}
	if err != nil && r.settled() {
		r.dropOwnSession()
	}
	return err
}

// finder waits for a contact file with a live writer behind it.
type finder struct {
	path    string
	session *Session

	file contactFile
	link carrier.Link

	mu   sync.Mutex
	last error // why the last look was not enough
}

// find returns once a connection to the writer is up. A file whose owner does
// not answer counts as not there yet: a new writer may be about to replace it.
func (f *finder) find(ctx context.Context) error {
	start := time.Now()
	defer explain(ctx, f.session.log, func() (string, []any) {
		return "waiting for the writer's contact file", append([]any{"path", f.path, "reason", f.reason()}, until(ctx)...)
	})()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := f.look(ctx)
		if err == nil || f.final(err) {
			return err
		}
		if ctx.Err() == nil { // else it says no more than that the time is up
			f.setReason(err)
		}
		select {
		case <-ctx.Done():
			return f.giveUp(ctx, start)
		case <-f.session.gone:
			return fmt.Errorf("session: %w", ErrClosed)
		case <-tick.C:
		}
	}
}

// look tries once.
func (f *finder) look(ctx context.Context) (err error) {
	f.file, err = readContact(f.path)
	if err != nil {
		return err
	}
	addr, err := f.file.contact.Addr()
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.reason() == nil {
		f.setReason(fmt.Errorf("%s: no answer from %v; is the writer stopped?", f.path, addr))
	}
	f.link, err = f.session.dial(ctx, f.file.contact)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no answer from %v; is the writer stopped? %w", f.path, addr, err)
	}
	return fmt.Errorf("%s: %w: nobody of that name at %v; start it again, or remove the file: %w", f.path, ErrStale, addr, err)
}

// final reports whether waiting longer cannot help.
func (f *finder) final(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrContact) || errors.Is(err, cm.ErrNoAddress) || errors.Is(err, ErrClosed)
}

func (f *finder) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *finder) setReason(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
}

// giveUp makes the error of a search that has ended.
func (f *finder) giveUp(ctx context.Context, start time.Time) error {
	cause, last := context.Cause(ctx), f.reason()
	switch {
	case errors.Is(last, fs.ErrNotExist):
		hint := ""
		if _, err := os.Stat(filepath.Dir(f.path)); err != nil {
			hint = " (its folder does not exist)"
		} else if near := similarStreams(f.path); near != nil {
			hint = " (the folder has: " + strings.Join(near, ", ") + ")"
		}
		return fmt.Errorf("%s: %w%s: %w", f.path, ErrNoStream, hint, cause)
	case last != nil:
		age := ""
		if st, err := os.Stat(f.path); err == nil {
			age = fmt.Sprintf(" (the file is %v old)", time.Since(st.ModTime()).Round(time.Second))
		}
		return fmt.Errorf("%w%s: %w", last, age, cause)
	}
	return fmt.Errorf("%s: after %v: %w", f.path, time.Since(start).Round(time.Millisecond), cause)
}

// shakeHands runs the opening on a link that is up.
func (r *Reader) shakeHands(ctx context.Context, f *finder) error {
	s := r.session
	r.prepare(f)
	if err := s.beginOpening(r); err != nil {
		s.unuse(f.link)
		return err
	}
	r.event(cp.Start{})
	err := r.await(ctx, f)
	if err != nil {
		r.giveBack(err)
	}
	if ctx.Err() != nil && r.own && r.settled() {
		f.link.Abort(err) // the time is up: do not wait for an orderly end
	}
	return err
}

// settled reports whether no handshake goes on in the background.
func (r *Reader) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.opening
}

// prepare makes the machine, and the identities that the writer will know us by.
// With the first of them anybody can reach us, so all of it is one step.
func (r *Reader) prepare(f *finder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.session
	control := s.issue(1, route{reader: r})
	data := s.issue(1, route{reader: r, data: true})
	contact := s.cm.ContactFor(f.link).String()
	cfg := cp.ReaderConfig{
		StreamID: f.file.stream, Planes: []string{planeEvpath}, SpecPreload: r.cfg.Params.preloads(1), Latest: r.cfg.Params.AlwaysProvideLatestTimestep,
		Query: s.issueCondition(r), Register: s.issueCondition(r),
		CP: sstmsg.CPReader{Contact: contact, ReaderID: control[0]}, DP: sstmsg.EvpathReader{Contact: contact, ReaderID: data[0]},
	}
	if _, weft := f.file.contact.Mark(); weft {
		cfg.WeftVersion = weftVersion
	} else {
		cfg.Cautious = true
	}
	r.link, r.opening = f.link, true
	r.ids = append(control, data...)
	r.conditions = [2]int32{cfg.Query, cfg.Register}
	r.machine = cp.NewReader(cfg)
	r.plane = dp.NewEvpath(dp.EvpathConfig{ReaderID: data[0], Send: r.sendRequest})
}

// weftVersion is the version of Weft's additions to the protocol.
const weftVersion = 1

// await waits for the result of the opening.
func (r *Reader) await(ctx context.Context, f *finder) error {
	defer explain(ctx, r.session.log, func() (string, []any) {
		args := []any{"stream", f.path, "writer", r.peer(), "phase", r.phase()}
		return "connected; waiting for the writer to let us in, which ADIOS2 does in its Open or its next EndStep", append(args, until(ctx)...)
	})()
	select {
	case err := <-r.opened:
		return err
	case <-f.link.Done(): // perhaps before we were there to be told
		r.lost(nil)
	case <-ctx.Done():
		r.event(cp.Cancel{Err: context.Cause(ctx)})
	}
	return <-r.opened // why it is over, unless the writer was faster
}

func (r *Reader) phase() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Phase().String()
}

// accepted takes the writer's response in. The caller holds mu.
func (r *Reader) accepted(m *sstmsg.WriterResponse) error {
	r.response = m
	r.far = make([]carrier.Link, len(m.CP))
	ids := make([]int64, len(m.Evpath))
	for i, w := range m.Evpath {
		ids[i] = w.WriterID
	}
	r.plane.Attach(ids)
	r.decoder = step.NewDecoder(step.DecoderConfig{ColumnMajor: m.Params.IsRowMajor == 0})
	return nil
}

// sendRequest sends a read request to a writer rank.
func (r *Reader) sendRequest(ctx context.Context, rank int, m *sstmsg.ReadRequest) error {
	l, err := r.rankLink(ctx, rank)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.Phase() == cp.Closed {
		return ErrClosed // real writers must not be asked anything after ReaderClose
	}
	return r.session.send(l, m, sstmsg.Options{}, nil)
}

// rankLink returns the link to a writer rank, and makes it at first use.
func (r *Reader) rankLink(ctx context.Context, rank int) (carrier.Link, error) {
	r.mu.Lock()
	l := r.far[rank]
	if rank == 0 {
		l = r.link
	}
	contact := r.response.CP[rank].Contact
	r.mu.Unlock()
	if l != nil {
		return l, nil
	}
	c, err := cm.ParseContact(contact)
	if err != nil {
		return nil, fmt.Errorf("contact of writer rank %d: %w", rank, err)
	}
	l, err = r.session.dial(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("writer rank %d: %w", rank, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.released:
		r.session.unuse(l)
		return nil, ErrClosed
	case r.far[rank] != nil: // another Get was faster
		r.session.unuse(l)
	case l == r.link: // all ranks are in one process
		r.session.unuse(l)
		return l, nil
	default:
		r.far[rank] = l
	}
	return r.far[rank], nil
}

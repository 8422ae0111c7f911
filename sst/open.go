package sst

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/step"
)

// pollInterval is how often a missing contact file is looked for: file systems
// that clusters share offer no event. ADIOS2 polls as often.
const pollInterval = 100 * time.Millisecond

// followGrace is how much longer the other ranks wait than rank 0 does, so that
// they hear its reason and not only that the time is up.
const followGrace = 700 * time.Millisecond

// weftVersion is the version of Weft's additions to the protocol.
const weftVersion = 1

// Open attaches to a stream by name, with or without the suffix ".sst". It
// waits for the contact file, for a live writer behind it, for every rank of its
// own cohort, and for the writer's answer, which a real writer gives inside its
// own Open or EndStep; all of that within OpenTimeoutSecs.
//
// Every rank of a cohort calls Open with the same name and the same parameters,
// and gets the same result. Only rank 0 looks for the contact file.
//
// If ctx ends or the time is up after the reader has registered, Open returns
// at once, but the handshake is finished in the background: an ADIOS2 writer
// hangs or crashes otherwise. A program that wants to exit then should use a
// [Session] of its own and close it, which waits.
func Open(ctx context.Context, name string, cfg ReaderConfig) (*Reader, error) {
	r := newReader(name, cfg)
	limit := r.cfg.Params.openTimeout()
	wait := limit
	if r.ranks.rank != 0 {
		wait += followGrace
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w after %v (OpenTimeoutSecs)", ErrTimeout, limit))
	defer cancel()
	if err := r.open(ctx); err != nil {
		return nil, &Error{Op: "open", Stream: name, Peer: r.peer(), Err: err}
	}
	return r, nil
}

// newReader makes what cannot fail.
func newReader(name string, cfg ReaderConfig) *Reader {
	r := &Reader{
		name: name, cfg: cfg, ranks: cohortLink{size: 1}, opened: make(chan outcome, 1), taking: make(chan struct{}, 1),
		steps: map[int64]*heldStep{}, pushers: map[int]carrier.Link{}, here: map[int]bool{},
	}
	if cfg.Cohort != nil {
		r.ranks.rank, r.ranks.size = cfg.Cohort.Rank(), cfg.Cohort.Size()
	}
	r.ranks.undelivered = r.undelivered
	if r.cfg.CloseTimeout == 0 {
		r.cfg.CloseTimeout = defaultReaderClose
	}
	if r.ranks.rank != 0 {
		r.here[0] = true
	} else {
		for _, rank := range r.ranks.others() {
			r.here[rank] = true
		}
	}
	return r
}

// open goes through the whole opening, and leaves nothing behind if that fails.
func (r *Reader) open(ctx context.Context) (err error) {
	looking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	path, err := r.prepare(ctx)
	if joining := r.join(); err == nil { // with bad news too
		err = joining
	}
	switch {
	case err != nil:
		r.refuse(ctx, err)
	case r.ranks.rank == 0:
		err = r.lookAndKnock(looking, ctx, path)
	default:
		err = r.follow(ctx)
	}
	if err != nil {
		r.giveUp(err)
	}
	return err
}

// prepare makes everything that needs no peer: session, plane and identities,
// machines. With an identity anybody can reach us, so all of it is one step.
func (r *Reader) prepare(ctx context.Context) (path string, err error) {
	r.cfg.Params, err = r.cfg.Params.resolve(ReaderSide)
	if err == nil && r.cfg.ReadBatch < 0 {
		err = fmt.Errorf("%w: ReadBatch of %d bytes", ErrParam, r.cfg.ReadBatch)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		path, err = streamPath(r.name)
	}
	if err == nil {
		r.session, r.own, err = sessionFor(ctx, r.cfg.Session, r.cfg.Params)
	}
	if err != nil {
		return path, err
	}
	r.eager.most = r.session.spin()
	if err := r.session.manualFor(r.ranks.size); err != nil {
		return path, err
	}
	r.changed.also = r.session.wakeManual
	if r.planes, err = r.session.readerPlanes(ctx, &r.cfg.Params); err != nil {
		return path, err
	}
	dataContact, err := r.session.dataContact(&r.cfg.Params)
	if err != nil {
		return path, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeMachines(dataContact.String())
	if err := r.session.beginOpening(r, r.leader != nil); err != nil {
		return path, err
	}
	r.opening = r.leader != nil
	return path, nil
}

// makeMachines makes plane and machines. The caller holds mu.
func (r *Reader) makeMachines(dataContact string) {
	s, p := r.session, &r.cfg.Params
	control := s.issue(1, route{reader: r})
	data := s.issue(1, route{reader: r, data: true})
	r.ids = append(control, data...)
	var gone error
	if r.cfg.Observer {
		gone = ErrStepGone
	}
	r.plane = dp.NewNative(dp.NewEvpath(dp.EvpathConfig{
		ReaderID: data[0], Rank: r.ranks.rank, Send: r.sendRequest, Watch: r.watchRank, Memory: r.session.cm.Buffer, Lost: ErrWriterFailed, Gone: gone, MaxEarly: r.session.early, Batch: r.cfg.ReadBatch, Await: s.await,
	}))
	contact := s.cm.Contact().String()
	r.member = cp.NewReaderMember(cp.MemberReaderConfig{Leads: r.ranks.rank == 0, Hello: cp.ReaderHello{
		CP:     sstmsg.CPReader{Contact: contact, ReaderID: control[0]},
		DP:     sstmsg.EvpathReader{Contact: dataContact, ReaderID: data[0]},
		Params: p.common(),
	}})
	if r.ranks.rank != 0 {
		return
	}
	alone := int64(0)
	if s.cfg.ManualProgress {
		alone = control[0]
	}
	r.leader = cp.NewReaderLeader(cp.ReaderConfig{
		Members: r.ranks.size, Params: p.common(), Planes: r.planes, SpecPreload: p.preloads(r.ranks.size), Insist: p.SpeculativePreloadMode == "On",
		Latest: p.AlwaysProvideLatestTimestep, Observer: r.cfg.Observer, Alone: alone,
	})
}

// refuse gives up before it has begun. The other ranks wait for our hello, and
// are told that it does not come: they open without a rank that has been
// cancelled, and fail with one whose configuration is refused. Nobody opens
// without rank 0.
func (r *Reader) refuse(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ranks.rank != 0 && ctx.Err() != nil {
		r.ranks.send(&cp.Left{}, 0)
		return
	}
	r.ranks.sayFailed(err)
}

// giveUp leaves nothing behind but a handshake that goes on without its caller.
func (r *Reader) giveUp(err error) {
	if r.leader != nil {
		r.leaderEvent(cp.LeaveNow{Err: err})
	}
	r.ranks.flush(&r.mu)
	r.leaveChannel()
	if r.plane != nil {
		r.giveBack(err)
	}
	if r.settled() {
		r.dropOwnSession()
	}
}

// follow is the opening of every rank but 0: it waits for what rank 0 says.
func (r *Reader) follow(ctx context.Context) error {
	if r.ranks.rank == 1 { // one line for the stream, not one for each rank
		defer explain(ctx, r.session.log, func() (string, []any) {
			args := []any{"stream", r.name, "rank", r.ranks.rank, "of", r.ranks.size}
			return "waiting for rank 0 of the reader, which looks for the writer", append(args, until(ctx)...)
		})()
	}
	r.memberEvent(cp.MemberStart{})
	select {
	case o := <-r.opened:
		return o.err
	case <-ctx.Done():
		r.memberEvent(cp.MemberLeave{Err: context.Cause(ctx)})
	}
	return (<-r.opened).err // why it is over, unless rank 0 was faster
}

// lookAndKnock is the opening of rank 0: it looks for a writer and asks to be
// let in, until one does, or does not for good. Looking ends early when another
// rank gives up.
func (r *Reader) lookAndKnock(looking, ctx context.Context, path string) error {
	r.memberEvent(cp.MemberStart{})
	for first := true; ; first = false {
		f := &finder{path: path, session: r.session, user: r, impatient: r.cfg.FailStale}
		if err := r.find(looking, f); err != nil {
			r.leaderEvent(cp.Cancel{Err: err})
			return (<-r.opened).err
		}
		o := r.knock(ctx, f)
		if !o.again {
			return o.err
		}
		if first {
			defer explain(ctx, r.session.log, func() (string, []any) {
				return "the writer ends as we come; looking for another", append([]any{"stream", r.name}, until(ctx)...)
			})()
		}
		select {
		case <-time.After(pollInterval): // the contact file may be about to change
		case <-looking.Done():
			r.leaderEvent(cp.Cancel{Err: fmt.Errorf("%w: %w: %w", ErrStale, o.err, context.Cause(looking))})
			return (<-r.opened).err
		}
	}
}

// find looks for the writer.
func (r *Reader) find(ctx context.Context, f *finder) error {
	var err error
	if r.cfg.Params.RegistrationMethod == byScreen {
		err = f.ask(ctx, r.cfg.Screen)
	} else {
		err = f.find(ctx)
	}
	if _, weft := f.file.contact.Mark(); err == nil && r.cfg.Observer && !weft {
		r.session.unuse(f.link, r)
		err = fmt.Errorf("%w: Observer: an ADIOS2 writer counts every reader; only a Weft writer can leave one out", ErrParam)
	}
	return err
}

// knock goes through the opening on a link that is up.
func (r *Reader) knock(ctx context.Context, f *finder) outcome {
	defer explain(ctx, r.session.log, func() (string, []any) {
		args := []any{"stream", f.path, "writer", r.peer(), "phase", r.phase(), "ranks", r.ranks.size}
		if r.phase() == cp.Routing.String() {
			return "connected; seeing which processes of the writer share their memory with us", append(args, "each rank for at most", tryFor)
		}
		return "connected; waiting for the writer to let us in, which ADIOS2 does in its Open or its next EndStep", append(args, until(ctx)...)
	})()
	if err := r.attempt(f); err != nil {
		return outcome{err: err}
	}
	select {
	case o := <-r.opened:
		return r.close(ctx, f, o)
	case <-f.link.Done(): // perhaps before we were there to be told
		select {
		case o := <-r.opened:
			return r.close(ctx, f, o)
		default:
			r.lost(nil)
		}
	case <-ctx.Done():
		r.leaderEvent(cp.Cancel{Err: context.Cause(ctx)})
	}
	return r.close(ctx, f, <-r.opened) // why it is over, unless the writer was faster
}

// close does not wait for an orderly end of the link if the time is up.
func (r *Reader) close(ctx context.Context, f *finder, o outcome) outcome {
	if o.err == nil && !o.again {
		return outcome{err: r.standAlone(ctx, f.link)}
	}
	if o.err != nil && !o.again && ctx.Err() != nil && r.own && r.settled() {
		f.link.Abort(o.err)
	}
	return o
}

// attempt tells the leader of a link.
func (r *Reader) attempt(f *finder) error {
	s, info := r.session, f.link.Info()
	e := cp.Attempt{
		StreamID: f.file.stream, Query: s.issueCondition(r), Register: s.issueCondition(r),
		Contact: s.cm.ContactFor(f.link).String(), Writer: info.Peer, Release: info.Release.String(),
	}
	if _, weft := f.file.contact.Mark(); weft {
		e.WeftVersion = weftVersion
	} else {
		e.Cautious = true
	}
	r.mu.Lock()
	if r.released {
		r.mu.Unlock()
		s.unuse(f.link, r)
		return fmt.Errorf("session: %w", ErrClosed)
	}
	r.link, r.weft, r.conditions = f.link, e.WeftVersion != 0, []int32{e.Query, e.Register}
	r.lead(e)
	r.unlock()
	return nil
}

// forgetAttempt takes back what one attempt needed. The caller holds mu.
func (r *Reader) forgetAttempt() {
	r.old = append(r.old, r.link)
	for _, l := range r.peers {
		r.old = append(r.old, l)
	}
	r.link, r.near, r.peers, r.leaving, r.alone = nil, nil, nil, false, false
	r.session.forgetConditions(r.conditions)
	r.conditions = nil
	r.trying = 0
	r.dropRoutes()
}

// settled reports whether no handshake goes on in the background.
func (r *Reader) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.opening
}

func (r *Reader) phase() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader.Phase().String()
}

// accepted takes the writer's response in. The caller holds mu.
func (r *Reader) accepted(m *cp.ReaderOpened) {
	r.response, r.weft, r.writer, r.release = m.Response, m.Weft, m.Writer, m.Release
	r.eager.peers = r.ranks.size - 1 + processes(m.Response.CP)
	r.far = make([]carrier.Link, len(m.Response.CP))
	ids := make([]int64, len(m.Response.Evpath))
	for i, w := range m.Response.Evpath {
		ids[i] = w.WriterID
	}
	r.plane.Attach(ids)
	r.useRoutes(m.Plane)
	r.decoder = step.NewDecoder(step.DecoderConfig{ColumnMajor: m.Response.Params.IsRowMajor == 0})
}

// processes counts those of a writer's ranks: each has one contact.
func processes(ranks []sstmsg.CPWriter) int {
	contacts := map[string]struct{}{}
	for i := range ranks {
		contacts[ranks[i].Contact] = struct{}{}
	}
	return len(contacts)
}

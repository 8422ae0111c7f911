package sst

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file begins a writer's stream: what the machines are told, how readers
// find it, and the wait for them.

// hello is how this rank introduces itself to rank 0.
func (w *Writer) hello() (cp.WriterHello, error) {
	contact, err := w.session.dataContact(&w.cfg.Params)
	if err != nil {
		return cp.WriterHello{}, err
	}
	params := w.cfg.Params.common()
	if w.cfg.ColumnMajor {
		params += " IsRowMajor=0"
	}
	hello := cp.WriterHello{Ranks: w.cfg.Ranks, Contact: contact.String(), Params: params}
	if w.near != nil {
		hello.Native = w.near.Contact()
	}
	return hello, nil
}

// leaderConfig is for rank 0.
func (w *Writer) leaderConfig(hello cp.WriterHello) cp.WriterConfig {
	p := &w.cfg.Params
	w.warn = p.warnBytes()
	return cp.WriterConfig{
		Members: w.ranks.size, Contact: hello.Contact, Params: hello.Params,
		Planes: w.planes, Wire: w.wireParams(),
		Rendezvous: p.rendezvous(),
		QueueLimit: p.QueueLimit, QueueLimitBytes: p.QueueLimitBytes, Discard: p.QueueFullPolicy == policyDiscard, BlockInBegin: p.BlockAt == atBeginStep,
		Reserve: p.ReserveQueueLimit, FirstPrecious: p.FirstTimestepPrecious, Distribution: p.distribution(),
		Preload: p.SpeculativePreloadMode != "Off", MaxPush: maxPreload, AskFrom: w.cfg.Params.askFrom(),
		LagNotice: p.LagNotice, LagLimit: p.LagLimit, WarnBytes: w.warn,
	}
}

func (p *Params) distribution() cp.Distribution {
	switch p.StepDistributionMode {
	case modeRoundRobin:
		return cp.RoundRobin
	case modeOnDemand:
		return cp.OnDemand
	}
	return cp.AllToAll
}

// warnShare of the memory that the process may use is when the log warns of
// waiting steps: one part in so many.
const warnShare = 4

func (p *Params) warnBytes() uint64 {
	if p.QueueWarnBytes != nil {
		return *p.QueueWarnBytes
	}
	n, err := sys.MemoryLimit()
	if err != nil {
		return 0 // this system does not say
	}
	return n / warnShare
}

// wireParams are our parameters as readers see them. ADIOS2 readers act on the
// marshalling, the array order, the pattern and the distribution only.
func (w *Writer) wireParams() sstmsg.Params {
	p := &w.cfg.Params
	wire := sstmsg.Params{
		MarshalMethod: sstmsg.MarshalBP5, DataTransport: cp.PlaneEvpath, WANDataTransport: "sockets", ControlTransport: "sockets",
		ControlModule: "select", OpenTimeoutSecs: int32(defaultOpenTimeout / time.Second), RendezvousReaderCount: int32(p.rendezvous()),
		QueueLimit: int32(p.QueueLimit), ReserveQueueLimit: int32(p.ReserveQueueLimit), StepDistributionMode: int64(p.distribution()),
		IsRowMajor: 1, CPCommPattern: sstmsg.PatternMin, StatsLevel: int32(p.StatsLevel), SpeculativePreloadMode: preloadMode(p.SpeculativePreloadMode),
		SpecAutoNodeThreshold: defaultThreshold, UseOneTimeAttributes: 1,
		NetworkInterface: p.NetworkInterface, ControlInterface: p.ControlInterface, DataInterface: p.DataInterface,
	}
	if p.QueueFullPolicy == policyDiscard {
		wire.QueueFullPolicy = 1
	}
	if p.RegistrationMethod == byScreen {
		wire.RegistrationMethod = 1
	}
	if p.FirstTimestepPrecious {
		wire.FirstTimestepPrecious = 1
	}
	if w.cfg.ColumnMajor {
		wire.IsRowMajor = 0
	}
	return wire
}

// preloadMode is SpeculativePreloadMode as a number (docs/wire/sst.md §4).
func preloadMode(mode string) int32 {
	switch mode {
	case "Off":
		return 0
	case "On":
		return 1
	}
	return 2
}

// start waits for the other ranks, lets readers come, and waits for them.
func (w *Writer) start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leader != nil {
		why := func() (string, []any) {
			return "waiting for the other ranks of the cohort to create the stream", append(append([]any{"stream", w.path}, w.holdups(rankMissing)...), until(ctx)...)
		}
		if err := w.waitFor(ctx, why, func() bool { return w.publish }); err != nil {
			return err
		}
		if err := w.letReadersCome(ctx); err != nil {
			return err
		}
	}
	return w.waitFor(ctx, func() (string, []any) { return w.whyNotStarted(ctx) }, func() bool { return w.member.Phase() >= cp.WriterStarted })
}

// whyNotStarted explains the wait for readers.
func (w *Writer) whyNotStarted(ctx context.Context) (string, []any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	args := []any{"stream", w.path}
	switch {
	case w.leader != nil:
	case w.ranks.rank == 1 && w.member.Phase() == cp.WriterJoining: // rank 0 may not be there to say it
		return "waiting for rank 0, and for the other ranks of the cohort, to create the stream", append(append(args, "rank", w.ranks.rank, "of", w.ranks.size), until(ctx)...)
	default: // rank 0 tells: one line for the stream, not one for each rank
		return "", nil
	}
	args = append(args, "have", w.leader.Active(), "want", w.cfg.Params.rendezvous(), "until", "they come, or the caller cancels")
	return "waiting for readers; set RendezvousReaderCount to 0 to go on without", args
}

// letReadersCome publishes the contact, and only then admits those that came
// meanwhile. The caller holds mu, which is free while files are written.
func (w *Writer) letReadersCome(ctx context.Context) error {
	w.contact = contactFile{stream: newID(), contact: w.session.cm.Contact()}
	w.session.addWriter(w.contact.stream, w)
	w.mu.Unlock()
	err := w.showContact(ctx)
	w.mu.Lock()
	if w.failure != nil {
		return w.failure // of another rank, meanwhile
	}
	w.tellLeader(cp.ContactPublished{Err: err})
	if err != nil {
		return err
	}
	w.published = true
	w.registerHeld()
	return nil
}

// showContact writes the contact file, or prints its line.
func (w *Writer) showContact(ctx context.Context) error {
	if w.cfg.Params.RegistrationMethod == byScreen {
		var to io.Writer = os.Stdout
		if w.cfg.Screen != nil {
			to = w.cfg.Screen
		}
		return printContact(to, w.name, w.contact)
	}
	w.takeOver(ctx)
	return writeContact(w.path, w.contact, w.cfg.ContactMode)
}

// unpublish lets no more readers come.
func (w *Writer) unpublish() {
	w.mu.Lock()
	stream := w.contact.stream
	w.mu.Unlock()
	if stream == 0 {
		return
	}
	if w.cfg.Params.RegistrationMethod != byScreen {
		if err := removeContact(w.path, w.contact); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.session.log.Warn("the contact file stays", "path", w.path, "error", err)
		}
	}
	w.session.removeWriter(stream)
}

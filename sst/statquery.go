package sst

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// StatConfig says how to ask a writer. The zero value works.
type StatConfig struct {
	// Session to ask through; nil opens one for the call. Who asks often saves
	// the opening of a listener each time.
	Session *Session
	// Wait is how long a writer is waited for; 0 looks once.
	Wait time.Duration
	// Timeout bounds connecting and the answer, once a contact file is there; 0
	// means 10 s.
	Timeout time.Duration
}

const defaultStatTimeout = 10 * time.Second

// QueryStat asks the writer of a stream, by name with or without the suffix
// ".sst", what it is doing. Who asks is no reader: the writer's application is not
// involved, no rendezvous counts it, no step waits for it, and nothing is
// logged. The connection is closed again.
//
// Only Weft writers can be asked; of others the error wraps [ErrNoStat], and
// nothing was sent to them, not even a connection made. No contact file is
// [ErrNoStream], nobody behind it [ErrStale], a stream that has ended [ErrClosed].
func QueryStat(ctx context.Context, name string, cfg StatConfig) (Stat, error) {
	st, peer, err := queryStat(ctx, name, cfg)
	if err != nil {
		return Stat{}, &Error{Op: "ask", Stream: name, Peer: peer, Err: err}
	}
	return st, nil
}

func queryStat(ctx context.Context, name string, cfg StatConfig) (st Stat, peer string, err error) {
	path, err := streamPath(name)
	if err != nil {
		return st, "", err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultStatTimeout
	}
	s, own, err := sessionFor(ctx, cfg.Session, Params{})
	if err != nil {
		return st, "", err
	}
	if own {
		defer s.Close()
	}
	text, peer, err := s.awaitWriter(ctx, path, cfg)
	if err != nil {
		return st, peer, err
	}
	st, err = decodeStat(text)
	return st, peer, err
}

// awaitWriter asks until somebody answers, or waiting does not help.
func (s *Session) awaitWriter(ctx context.Context, path string, cfg StatConfig) (text []byte, peer string, err error) {
	end := time.Now().Add(cfg.Wait)
	f := &finder{path: path, session: s}
	for {
		text, peer, err = s.askWriter(ctx, f, cfg.Timeout)
		if err == nil || ctx.Err() == nil && (time.Until(end) <= 0 || !worthWaiting(err)) {
			return text, peer, err
		}
		if ctx.Err() != nil {
			return nil, peer, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		select {
		case <-time.After(min(pollInterval, time.Until(end))): // a contact file has no event
		case <-ctx.Done():
		case <-s.gone:
			return nil, peer, fmt.Errorf("session: %w", ErrClosed)
		}
	}
}

// worthWaiting reports whether a writer may come that answers better.
func worthWaiting(err error) bool {
	return errors.Is(err, ErrNoStream) || errors.Is(err, ErrStale) || errors.Is(err, cp.ErrTooLate)
}

// askWriter finds the writer and asks it, once.
func (s *Session) askWriter(ctx context.Context, f *finder, limit time.Duration) (text []byte, peer string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, ErrTimeout))
	defer cancel()
	if err := f.lookForWeft(ctx); err != nil {
		return nil, "", err
	}
	defer s.unuse(f.link, nil)
	peer = f.link.Info().Peer
	text, err = s.ask(ctx, f.link, f.file.stream)
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%w: %w", ErrClosed, cp.ErrTooLate)
	}
	return text, peer, err
}

// lookForWeft is look for a writer that must be Weft. An ADIOS2 one is not
// even dialled.
func (f *finder) lookForWeft(ctx context.Context) error {
	file, err := readContact(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := ""
		if near := similarStreams(f.path); near != nil {
			hint = " (the folder has: " + strings.Join(near, ", ") + ")"
		}
		return fmt.Errorf("%s: %w%s: %w", f.path, ErrNoStream, hint, fs.ErrNotExist)
	case err != nil:
		return err
	}
	if err := mustBeWeft(file.contact); err != nil {
		return err
	}
	if err := f.look(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // it went in this moment
			err = fmt.Errorf("%s: %w: %w", f.path, ErrNoStream, err)
		}
		return err
	}
	if err := mustBeWeft(f.file.contact); err != nil { // replaced in this moment
		f.session.unuse(f.link, f.user)
		return err
	}
	return nil
}

// mustBeWeft returns the error for a writer without Weft's mark. Its contact
// shows the release: the CM instance has an ID since 2.11 (docs/wire/cm.md §9).
func mustBeWeft(c cm.Contact) error {
	if _, weft := c.Mark(); weft {
		return nil
	}
	release := "2.10 or earlier"
	if id, ok := c.CMID(); ok && id != 0 {
		release = "2.11 or later"
	}
	return fmt.Errorf("%w (release %s, by its contact file)", ErrNoStat, release)
}

// IsWeft reports whether the contact file of a stream, by name with or without
// the suffix ".sst", is that of a Weft writer. It connects to nobody.
func IsWeft(name string) (bool, error) {
	path, err := streamPath(name)
	if err != nil {
		return false, err
	}
	file, err := readContact(path)
	if err != nil {
		return false, err
	}
	return mustBeWeft(file.contact) == nil, nil
}

// ask sends one question and waits for its answer, which is empty if the stream
// has ended.
func (s *Session) ask(ctx context.Context, l carrier.Link, stream int64) ([]byte, error) {
	condition, answer := s.expectAnswer(l)
	defer s.forgetAnswer(condition)
	if err := s.send(l, &sstmsg.StatQuery{WriterID: stream, Condition: condition, What: sstmsg.StatAll}, sstmsg.Options{Weft: true}, nil); err != nil {
		return nil, err
	}
	select {
	case text := <-answer:
		return text, nil
	case <-l.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.gone:
		return nil, fmt.Errorf("session: %w", ErrClosed)
	}
	select {
	case text := <-answer: // it had come before the link went
		return text, nil
	default:
		return nil, fmt.Errorf("%w: it dropped the connection without an answer", ErrWriterFailed)
	}
}

// question is one that waits for its answer.
type question struct {
	link   carrier.Link // who may answer
	answer chan []byte
}

// expectAnswer makes a number by which an answer is known, and where it will
// come. The number is random, as that of an opening is.
func (s *Session) expectAnswer(l carrier.Link) (int32, <-chan []byte) {
	q := question{link: l, answer: make(chan []byte, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions == nil {
		s.questions = map[int32]question{}
	}
	for {
		c := rand.Int32N(1<<31-1) + 1
		if _, taken := s.questions[c]; !taken {
			s.questions[c] = q
			return c, q.answer
		}
	}
}

func (s *Session) forgetAnswer(condition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, condition)
}

// answered takes an answer in. One that nobody waits for any more is dropped.
func (s *Session) answered(l carrier.Link, m *sstmsg.StatReply) error {
	if n := m.Text.Len(); n > maxStatText {
		return fmt.Errorf("statistics of %d bytes, more than %d", n, maxStatText)
	}
	s.mu.Lock()
	q, ok := s.questions[m.Condition]
	s.mu.Unlock()
	if !ok || q.link != l {
		return nil
	}
	select {
	case q.answer <- bytes.Clone(m.Text.Bytes()):
	default: // a second answer
	}
	return nil
}

package memmon

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// MailboxConfig says who posts memory events of this process, and what they see.
type MailboxConfig struct {
	By       string   // who, for people: "hooks of libucm"
	Coverage Coverage // what they see. It is the caller's word, as far as Probe does not try it
	// Probe maps a page, has it go away by one of these events so that those who post see it (through the C library, say), and returns where
	// it was. For what it cannot play it returns errors.ErrUnsupported, and Coverage is believed. Nil: what the posters have shown in C counts
	// (weft_events_prove).
	Probe func(Event) (Range, error)
}

// Mailbox is a monitor, to be imported by this arbiter, of those who post events: hooks in C by weft_memory_events.h, Go by [Arbiter.Notify]. Everybody
// may post at any time; what the monitor adds is the word that everything is posted.
func (a *Arbiter) Mailbox(c MailboxConfig) Monitor { return &mailbox{c, a.events} }

type mailbox struct {
	c MailboxConfig
	e *events
}

func (m *mailbox) Name() string {
	if m.c.By == "" {
		return "mailbox"
	}
	return "mailbox of " + m.c.By
}

func (m *mailbox) Coverage() Coverage         { return m.c.Coverage }
func (*mailbox) Start(func(Range)) error      { return nil }
func (*mailbox) Stop() error                  { return nil }
func (*mailbox) Err() error                   { return nil }
func (m *mailbox) Watch(Range) (Watch, error) { return believed{}, nil }

// believed is always valid: the arbiter looks at the events.
type believed struct{}

func (believed) Valid() bool { return true }
func (believed) Close()      {}

var errUnproven = errors.New("nobody has shown that the events are posted: no Probe, and no weft_events_prove in C")

// provenInC are the events that weft_events_prove tries; bits of the page's word.
var provenInC = []Event{Unmap, MapOver, MoveAway, DontNeed, Free, Break}

// probes is how often one event is played: one of them is lost if others post more than can be remembered.
const probes = 8

// SelfTest has the posters show that they post: what hooks they had, others may have destroyed since.
func (m *mailbox) SelfTest() (unseen []Event, err error) {
	seen := m.probe
	if m.c.Probe == nil {
		if atomic.LoadUint64(&m.e.w[wordProven]) == 0 {
			return nil, errUnproven
		}
		seen = m.shown
	}
	for _, e := range m.c.Coverage.Events {
		is, err := false, error(nil)
		for i := 0; i < probes && !is && err == nil; i++ {
			is, err = seen(e)
		}
		if err != nil {
			return nil, fmt.Errorf("probe of %v: %w", e, err)
		}
		if !is {
			unseen = append(unseen, e)
		}
	}
	return unseen, nil
}

// shown says whether the posters have shown in C that they post an event.
func (m *mailbox) shown(e Event) (bool, error) {
	return !slices.Contains(provenInC, e) || atomic.LoadUint64(&m.e.w[wordProven])>>e&1 != 0, nil
}

// probe plays an event and says whether it was posted.
func (m *mailbox) probe(e Event) (told bool, err error) {
	before := trail{seen: m.e.count()} // what is told now is not of the probe, which may be given the same addresses
	r, err := m.c.Probe(e)
	if errors.Is(err, errors.ErrUnsupported) {
		return true, nil
	}
	if err != nil || r.Len == 0 {
		return false, err
	}
	m.e.follow(before, func(_ uint64, o Range) bool {
		told = o.Contains(r)
		return !told
	})
	return told, nil
}

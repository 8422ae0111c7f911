package memmon

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// MailboxConfig says who posts memory events of this process, and what they see.
type MailboxConfig struct {
	By       string   // who, for people: "hooks of libucm"
	Coverage Coverage // what they see. It is the caller's word, as far as Probe does not try it
	// Probe maps a page, has it go away so that those who post see it (by munmap of the C library, say), and returns where it was. Nil: the
	// posters have proven themselves in C (weft_events_prove).
	Probe func() (Range, error)
}

// Mailbox is a monitor, to be imported, of those who post events: hooks in C by weft_memory_events.h, Go by [Arbiter.Notify]. Everybody
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
func (m *mailbox) Watch(Range) (Watch, error) { return told{}, nil }

// told is always valid: the arbiter looks at the events.
type told struct{}

func (told) Valid() bool { return true }
func (told) Close()      {}

var errUnproven = errors.New("nobody has shown that the events are posted: no Probe, and no weft_events_prove in C")

// SelfTest has the posters show that they post.
func (m *mailbox) SelfTest() error {
	if m.c.Probe == nil {
		if atomic.LoadUint64(&m.e.w[wordProven]) == 0 {
			return errUnproven
		}
		return nil
	}
	before := m.e.now()
	r, err := m.c.Probe()
	if err != nil {
		return err
	}
	if r.Len == 0 {
		return fmt.Errorf("the probe names no memory: %w", errUnseen)
	}
	told := false
	m.e.scan(before, atomic.LoadUint64(&m.e.w[wordDone]), func(o Range) bool {
		told = o.Contains(r)
		return !told
	})
	if !told {
		return errUnseen
	}
	return nil
}

package sst_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// lazy is a cohort whose messages wait until somebody flushes: what a process has
// queued is lost if it exits before it is written.
type lazy struct {
	cohort.Cohort
	mu      sync.Mutex
	waiting []func()
	exited  bool
}

func (l *lazy) Join(name string, h cohort.Handler) (cohort.Channel, error) {
	ch, err := l.Cohort.Join(name, h)
	return &lazyChannel{ch, l}, err
}

// exit ends the process, so to speak: nothing more goes out.
func (l *lazy) exit() {
	l.mu.Lock()
	l.exited = true
	l.mu.Unlock()
	l.Close()
}

type lazyChannel struct {
	cohort.Channel
	of *lazy
}

func (c *lazyChannel) Send(to int, msg []byte) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.of.exited {
		c.of.waiting = append(c.of.waiting, func() { _ = c.Channel.Send(to, msg) })
	}
	return nil
}

func (c *lazyChannel) Flush(context.Context) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	for _, send := range c.of.waiting {
		send()
	}
	c.of.waiting = nil
	return nil
}

// Close does not write anything out, as an exit would not.
func (c *lazyChannel) Close() error { return nil }

// TestReasonBeforeExit: a process that exits as soon as its Open or Create has
// failed has told the other ranks why.
func TestReasonBeforeExit(t *testing.T) {
	open := func(c cohort.Cohort, s *sst.Session, name string) error {
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Cohort: c, Session: s})
		return err
	}
	create := func(c cohort.Cohort, s *sst.Session, name string) error {
		_, err := sst.Create(bounded(t), name, sst.WriterConfig{Cohort: c, Session: s})
		return err
	}
	for what, begin := range map[string]func(cohort.Cohort, *sst.Session, string) error{"Open": open, "Create": create} {
		t.Run(what, func(t *testing.T) {
			ranks := cohort.Local(3)
			first := &lazy{Cohort: ranks[0]}
			name := t.TempDir() + "/no/such/folder/s"
			if what == "Open" { // a file that is none ends the search
				name = streamName(t)
				writeText(t, name+".sst", "nonsense\n")
			}
			var others []<-chan error
			for _, c := range ranks[1:] {
				s := quickSession(t)
				others = append(others, async(func() error { return begin(c, s, name) }))
			}
			err := begin(first, quickSession(t), name)
			first.exit()
			for rank, done := range others {
				got := next(t, fmt.Sprintf("%s of rank %d", what, rank+1), done)
				if isErr(got, sst.ErrRankFailed) {
					t.Errorf("rank %d knows only that rank 0 is gone: %v; rank 0 had %v", rank+1, got, err)
				}
			}
			for _, c := range slices.Backward(ranks) {
				c.Close()
			}
		})
	}
}

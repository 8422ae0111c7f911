package memmon

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

func TestMailbox(t *testing.T) {
	sees := newFake().coverage
	gone := Range{1 << 40, 4096}
	a := testArbiter(t)
	all := Coverage{Events: []Event{Unmap, Break, Detach}}
	for what, c := range map[string]struct {
		c      MailboxConfig
		unseen []Event
		err    error
	}{
		"nobody has proven anything": {MailboxConfig{}, nil, errUnproven},
		"posts nothing":              {MailboxConfig{Probe: func(Event) (Range, error) { return gone, nil }}, all.Events, nil},
		"posts something else": {MailboxConfig{Probe: func(Event) (Range, error) {
			a.Notify(Range{1 << 41, 4096})
			return gone, nil
		}}, all.Events, nil},
		"probes nothing": {MailboxConfig{Probe: func(Event) (Range, error) { return Range{}, nil }}, all.Events, nil},
		"fails":          {MailboxConfig{Probe: func(Event) (Range, error) { return gone, errFake }}, nil, errFake},
		"posts":          {MailboxConfig{Probe: func(Event) (Range, error) { a.Notify(gone); return gone, nil }}, nil, nil},
		"cannot play one": {MailboxConfig{Probe: func(e Event) (Range, error) {
			if e == Detach {
				return Range{}, errors.ErrUnsupported
			}
			return gone, nil
		}}, all.Events[:2], nil},
	} {
		c.c.Coverage = all
		if unseen, err := a.Mailbox(c.c).(SelfTester).SelfTest(); !errors.Is(err, c.err) || !slices.Equal(unseen, c.unseen) {
			t.Errorf("%s: %v, %v", what, unseen, err)
		}
	}
	a.events.w[wordProven] = 1 << Unmap
	if unseen, err := a.Mailbox(MailboxConfig{Coverage: all}).(SelfTester).SelfTest(); err != nil || !slices.Equal(unseen, []Event{Break}) {
		t.Errorf("shown in C: %v, %v", unseen, err)
	}
	a.events.w[wordProven] = proven(sees.Events)
	m := a.Mailbox(MailboxConfig{By: "C", Coverage: sees})
	if err := a.Import(m); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if s := a.Status(); s.State != Running || s.Monitor != "mailbox of C" {
		t.Errorf("%+v", s)
	}
	b := pages(t, 1).Bytes()
	p, err := a.Prove(Mapped(b, nil))
	if err != nil || !p.Valid() {
		t.Fatal(err)
	}
	defer p.Close()
	a.events.post(RangeOf(b)) // as hooks do
	if p.Valid() {
		t.Error("valid although it was told")
	}
}

// TestMailboxOfAnother is imported by an arbiter that does not look into it.
func TestMailboxOfAnother(t *testing.T) {
	a, other := testArbiter(t), testArbiter(t)
	if err := a.Import(other.Mailbox(MailboxConfig{})); !errors.Is(err, ErrMonitor) {
		t.Errorf("imported: %v", err)
	}
	if err := a.Import(a.Mailbox(MailboxConfig{})); err != nil {
		t.Error(err)
	}
}

// TestProbeOfOldEvents has a poster stop in the middle, and after it the page of a probe be told of that lay there before.
func TestProbeOfOldEvents(t *testing.T) {
	a, gone := testArbiter(t), Range{1 << 40, 4096}
	a.events.w[wordBegun]++
	a.Notify(gone)
	m := a.Mailbox(MailboxConfig{Coverage: Coverage{Events: []Event{Unmap}}, Probe: func(Event) (Range, error) { return gone, nil }})
	if unseen, err := m.(SelfTester).SelfTest(); err != nil || !slices.Equal(unseen, []Event{Unmap}) {
		t.Errorf("an event of before is taken for the probe's: %v, %v", unseen, err)
	}
}

// proven are the bits that say so in the page.
func proven(events []Event) (bits uint64) {
	for _, e := range events {
		bits |= 1 << e
	}
	return bits
}

// TestDrainerTells has an event that was posted without Go reach the caches.
func TestDrainerTells(t *testing.T) {
	a := testArbiter(t)
	a.events.w[wordProven] = proven(newFake().coverage.Events)
	if err := a.Import(a.Mailbox(MailboxConfig{Coverage: newFake().coverage})); err != nil {
		t.Fatal(err)
	}
	told := make(chan Range, 10)
	defer a.Attach(func(r Range) { told <- r }, nil)()
	b := pages(t, 1).Bytes()
	p, err := a.Prove(Mapped(b, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a.events.post(RangeOf(b))
	if r := <-told; r != RangeOf(b) && r != Everything {
		t.Errorf("told of %v", r)
	}
}

// TestHeaderAgrees compares the numbers of the header for C with those here.
func TestHeaderAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(".", "weft_memory_events.h"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{
		"MAGIC": eventsMagic, "VERSION": eventsVersion, "SLOTS": numSlots, "GRANULES": numGranules, "GRANULE": granuleBits,
		"UNMAP": uint64(Unmap), "MAPOVER": uint64(MapOver), "MOVEAWAY": uint64(MoveAway), "DONTNEED": uint64(DontNeed), "FREE": uint64(Free), "BREAK": uint64(Break),
	} {
		m := regexp.MustCompile(`#define WEFT_EVENTS_` + name + ` (?:UINT64_C\()?(0x[0-9a-f]+|[0-9]+)`).FindSubmatch(text)
		if m == nil {
			t.Errorf("no %s in the header", name)
			continue
		}
		if got, err := strconv.ParseUint(string(m[1]), 0, 64); err != nil || got != want {
			t.Errorf("%s is %d in the header, %d here", name, got, want)
		}
	}
	list := regexp.MustCompile(`UINT64_C\((0x[123]e[0-9a-f]+)\)`).FindAllSubmatch(text, -1)
	if len(list) != len(eventsAt) {
		t.Fatalf("%d places in the header, %d here", len(list), len(eventsAt))
	}
	for i, m := range list {
		if at, err := strconv.ParseUint(string(m[1]), 0, 64); err != nil || at != eventsAt[i] {
			t.Errorf("place %d is %x in the header, %x here", i, at, eventsAt[i])
		}
	}
}

package cp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

func testWriterConfig() WriterConfig {
	return WriterConfig{Ranks: 1, Plane: "evpath", PlaneInfo: []string{"plane"}, Params: sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5}}
}

// registers is the registration of a reader of one rank; its identities follow
// from the key.
func registers(k ReaderKey) Register { return registersWith(k, 0, 1) }

func registersWith(k ReaderKey, preload int32, writerRanks int) Register {
	e := Register{Reader: k, Msg: &sstmsg.ReaderRegister{
		Condition: int32(k), SpecPreload: preload,
		CP:     []sstmsg.CPReader{{Contact: "r", ReaderID: int64(100 + k)}},
		Evpath: []sstmsg.EvpathReader{{Contact: "r", ReaderID: int64(200 + k)}},
	}}
	for rank := range writerRanks {
		e.Contacts = append(e.Contacts, fmt.Sprint("w", rank))
		e.Control = append(e.Control, int64(1000+10*int(k)+rank))
		e.Data = append(e.Data, int64(2000+10*int(k)+rank))
	}
	return e
}

func says(k ReaderKey, m sstmsg.Message) WriterEvent { return FromReader{Reader: k, Msg: m} }

func activates(k ReaderKey) WriterEvent { return says(k, &sstmsg.ReaderActivate{}) }

func releases(k ReaderKey, step int64) WriterEvent {
	return says(k, &sstmsg.ReleaseTimestep{Step: step})
}

func leaves(k ReaderKey) WriterEvent { return says(k, &sstmsg.ReaderClose{}) }

// ends is a step that ends. A format or attribute of "" is none.
func ends(format, attribute string) WriterEvent {
	p := Publish{Metadata: []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte("m"))}}}
	if format != "" {
		p.Formats = []sstmsg.FormatBlock{{ID: sstmsg.ByteBlob([]byte(format)), Body: sstmsg.ByteBlob([]byte("body"))}}
	}
	if attribute != "" {
		p.Attributes = sstmsg.ByteBlob([]byte(attribute))
	}
	return p
}

// wline is an event of a writer and what must follow from it.
type wline struct {
	do   WriterEvent
	want []string
}

func won(do WriterEvent, want ...string) wline { return wline{do, want} }

func TestWriter(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*WriterConfig)
		lines  []wline
	}{
		// docs/wire/sst.md §5.1, §6.1, §9.1.
		"one reader, to the end": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(ends("", ""), "send step 0 to 101 [1]"),
			won(releases(1, 0), "free 0", "changed"),
			won(ends("", ""), "send step 1 to 101 [1]"),
			won(Finish{}, "send WriterClose 1 to 101 [1]", "changed"),
			won(releases(1, 1), "free 1", "changed"),
			won(leaves(1), "drop [1]: nil", "changed"),
			won(Finish{}),
		}},
		"nothing is sent between the response and the activation": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("f", ""), ""),
			won(ends("", ""), ""),
			won(Finish{}, "changed"),
			won(activates(1), "send step 0 to 101 +f [1]", "send step 1 to 101 [1]", "send WriterClose 1 to 101 [1]", "changed"),
			won(activates(1)),
		}},
		"no reader holds nothing": {nil, []wline{
			won(ends("f", "a"), "free 0"),
			won(ends("", ""), "free 1"),
			won(Finish{}, "changed"),
		}},
		"a stream without steps": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(Finish{}, "send WriterClose -1 to 101 [1]", "changed"),
		}},

		// §7.3: formats and attributes, also for late readers.
		"a late reader gets all formats and the attributes": {nil, []wline{
			won(ends("f", "a"), "free 0"),
			won(registers(1), "send WriterResponse next 1 [1]"),
			won(activates(1), "changed"),
			won(ends("g", ""), "send step 1 to 101 +f +g attr a [1]"),
			won(ends("", ""), "send step 2 to 101 [1]"),
			won(ends("h", "b"), "send step 3 to 101 +h attr b [1]"),
			won(ends("", ""), "send step 4 to 101 [1]"),
		}},
		"a late reader holds what is queued": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(ends("f", "a"), "send step 0 to 101 +f attr a [1]"),
			won(ends("g", "b"), "send step 1 to 101 +g attr b [1]"),
			won(ends("", ""), "send step 2 to 101 [1]"),
			won(releases(1, 0), "free 0", "changed"),
			won(registers(2), "send WriterResponse next 1 [2]"),
			won(releases(1, 1)),
			won(activates(2), "send step 1 to 102 +f +g attr b [2]", "send step 2 to 102 [2]", "changed"),
			won(releases(2, 1), "free 1", "changed"),
			won(releases(2, 2)),
			won(releases(1, 2), "free 2", "changed"),
		}},
		"attributes of a step are those of its time": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("", "a"), ""),
			won(ends("", "b"), ""),
			won(activates(1), "send step 0 to 101 attr a [1]", "send step 1 to 101 attr b [1]", "changed"),
		}},

		// §6.1: a full queue.
		"discard": {func(c *WriterConfig) { c.QueueLimit, c.Discard = 1, true }, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(registers(2), "send WriterResponse next 0 [2]"),
			won(ends("f", "a"), "send step 0 to 101 +f attr a [1]"),
			won(ends("g", "b"), "send step 1 to 101 discarded [1]", "free 1"),
			won(activates(2), "send step 0 to 102 +f attr a [2]", "changed"),
			won(ends("", ""), "send step 2 to 101 discarded [1]", "send step 2 to 102 discarded [2]", "free 2"),
			won(releases(1, 0)),
			won(releases(2, 0), "free 0", "changed"),
			won(ends("", ""), "send step 3 to 101 +g attr b [1]", "send step 3 to 102 +g attr b [2]"),
			won(Finish{}, "send WriterClose 3 to 101 [1]", "send WriterClose 3 to 102 [2]", "changed"),
		}},
		"the last step is discarded": {func(c *WriterConfig) { c.QueueLimit, c.Discard = 1, true }, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(ends("", ""), "send step 0 to 101 [1]"),
			won(ends("", ""), "send step 1 to 101 discarded [1]", "free 1"),
			won(Finish{}, "send WriterClose 0 to 101 [1]", "changed"),
		}},

		// §9.3: a reader that goes, at any point, frees what it held.
		"lost before the activation": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("", ""), ""),
			won(ReaderLost{1, errTest}, "drop [1]: errTest", "free 0", "changed", "changed"),
			won(ReaderLost{1, errTest}),
			won(activates(1)),
			won(releases(1, 0)),
		}},
		"lost while streaming": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(registers(2), "send WriterResponse next 0 [2]"),
			won(activates(2), "changed"),
			won(ends("", ""), "send step 0 to 101 [1]", "send step 0 to 102 [2]"),
			won(ends("", ""), "send step 1 to 101 [1]", "send step 1 to 102 [2]"),
			won(releases(2, 0)),
			won(ReaderLost{1, nil}, "drop [1]: errGone", "free 0", "changed", "changed"),
			won(leaves(2), "drop [2]: nil", "free 1", "changed", "changed"),
			won(ends("", ""), "free 2"),
		}},
		"closes before the activation": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("", ""), ""),
			won(leaves(1), "drop [1]: nil", "free 0", "changed", "changed"),
		}},
		"late messages": {nil, []wline{
			won(activates(9)),
			won(releases(9, 0)),
			won(leaves(9)),
			won(ReaderLost{9, errTest}),
			won(says(9, &sstmsg.ReaderRequestStep{})),
		}},

		// Readers that break the rules.
		"releases that mean nothing": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("", ""), ""),
			won(releases(1, 0)), // not sent to it yet
			won(activates(1), "send step 0 to 101 [1]", "changed"),
			won(releases(1, 7)),
			won(releases(1, -1)),
			won(releases(1, 0), "free 0", "changed"),
			won(releases(1, 0)),
		}},
		"a reader without ranks": {nil, []wline{
			won(Register{Reader: 1, Msg: &sstmsg.ReaderRegister{}}, "drop [1]: errUnexpected"),
		}},
		"a key that is in use": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(registers(1), "drop [1]: errUnexpected"),
		}},
		"asking for steps, which is for another mode": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(ends("", ""), ""),
			won(says(1, &sstmsg.ReaderRequestStep{}), "drop [1]: errUnexpected", "free 0", "changed", "changed"),
		}},
		"locking, which we ignore": {nil, []wline{
			won(registers(1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(says(1, &sstmsg.LockReaderDefinitions{Step: 1})),
			won(ends("", ""), "send step 0 to 101 [1]"),
		}},

		// After the end.
		"a reader that comes after Finish": {nil, []wline{
			won(ends("", ""), "free 0"),
			won(Finish{}, "changed"),
			won(registers(1), "send WriterResponse next 1 [1]"),
			won(activates(1), "send WriterClose 0 to 101 [1]", "changed"),
			won(leaves(1), "drop [1]: nil", "changed"),
		}},

		// §8.3: preload.
		"preload for those who ask": {func(c *WriterConfig) { c.Preload = true }, []wline{
			won(registersWith(1, 1, 1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(registers(2), "send WriterResponse next 0 [2]"),
			won(activates(2), "changed"),
			won(ends("", ""), "push 0 [1]", "send step 0 to 101 mode 1 [1]", "send step 0 to 102 [2]"),
			won(Publish{Metadata: []sstmsg.Block{{}}, Large: true}, "send step 1 to 101 [1]", "send step 1 to 102 [2]"),
		}},
		"preload switched off": {nil, []wline{
			won(registersWith(1, 1, 1), "send WriterResponse next 0 [1]"),
			won(activates(1), "changed"),
			won(ends("", ""), "send step 0 to 101 [1]"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testWriterConfig()
			if c.change != nil {
				c.change(&cfg)
			}
			w := NewWriter(cfg)
			for i, l := range c.lines {
				if slices.Equal(l.want, []string{""}) {
					l.want = nil
				}
				same(t, nameEvent(i, l.do), nameWriter(w.Handle(l.do)), l.want...)
			}
		})
	}
}

// TestWriterResponse looks into the answer to a registration.
func TestWriterResponse(t *testing.T) {
	cfg := testWriterConfig()
	cfg.Ranks, cfg.PlaneInfo = 3, []string{"p0", "p1", "p2"}
	w := NewWriter(cfg)
	m := w.Handle(registersWith(4, 0, 3))[0].(SendToReader).Msg.(*sstmsg.WriterResponse)
	if m.Condition != 4 || len(m.CP) != 3 || len(m.Evpath) != 3 || m.Params == nil || m.Params.MarshalMethod != sstmsg.MarshalBP5 {
		t.Fatalf("response %+v", m)
	}
	for rank := range 3 {
		if want := (sstmsg.CPWriter{Contact: fmt.Sprint("w", rank), WriterID: int64(1040 + rank)}); m.CP[rank] != want {
			t.Errorf("rank %d: %+v", rank, m.CP[rank])
		}
		if want := (sstmsg.EvpathWriter{Contact: fmt.Sprint("p", rank), WriterID: int64(2040 + rank)}); m.Evpath[rank] != want {
			t.Errorf("rank %d: %+v", rank, m.Evpath[rank])
		}
	}
	m.Params.QueueLimit = 99 // one reader's message must not be another's
	n := w.Handle(registersWith(5, 0, 3))[0].(SendToReader).Msg.(*sstmsg.WriterResponse)
	if n.Params.QueueLimit == 99 {
		t.Error("two responses share their parameters")
	}
}

// TestWriterStepMessage checks what a real reader looks at without asking.
func TestWriterStepMessage(t *testing.T) {
	cfg := testWriterConfig()
	cfg.Ranks, cfg.PlaneInfo, cfg.QueueLimit, cfg.Discard = 3, []string{"p0", "p1", "p2"}, 1, true
	w := NewWriter(cfg)
	w.Handle(registersWith(1, 0, 3))
	w.Handle(activates(1))
	for range 2 { // the second is discarded
		m := w.Handle(Publish{Metadata: make([]sstmsg.Block, 3)})[0].(SendToReader).Msg.(*sstmsg.TimestepMetadata)
		if m.CohortSize != 3 || len(m.Attributes) != 3 {
			t.Errorf("step %d: cohort %d, %d attribute blocks", m.Step, m.CohortSize, len(m.Attributes))
		}
	}
}

func TestWriterRoom(t *testing.T) {
	cfg := testWriterConfig()
	cfg.QueueLimit = 2
	w := NewWriter(cfg)
	w.Handle(registers(1))
	w.Handle(activates(1))
	room := func(want bool, held int) {
		t.Helper()
		if w.Room() != want || w.Held() != held {
			t.Errorf("room %v with %d held, want %v with %d", w.Room(), w.Held(), want, held)
		}
	}
	room(true, 0)
	w.Handle(ends("", ""))
	room(true, 1)
	w.Handle(ends("", ""))
	room(false, 2)
	if got := w.Laggards(); !slices.Equal(got, []ReaderKey{1}) {
		t.Errorf("laggards %v", got)
	}
	w.Handle(releases(1, 0))
	room(true, 1)
	w.Handle(leaves(1))
	room(true, 0)
	if got := w.Laggards(); got != nil {
		t.Errorf("laggards %v", got)
	}
	w.Handle(registers(2))
	if got := w.Laggards(); !slices.Equal(got, []ReaderKey{2}) {
		t.Errorf("laggards %v, want the one that has yet to activate", got)
	}
}

// TestWriterDrained follows the end of a stream.
func TestWriterDrained(t *testing.T) {
	w := NewWriter(testWriterConfig())
	drained := func(want bool) {
		t.Helper()
		if w.Drained() != want {
			t.Errorf("drained %v, want %v", w.Drained(), want)
		}
	}
	drained(false)
	w.Handle(registers(1))
	w.Handle(activates(1))
	w.Handle(ends("", ""))
	w.Handle(Finish{})
	drained(false) // a step is held
	w.Handle(registers(2))
	w.Handle(releases(1, 0))
	drained(false) // reader 2 holds it, and is opening
	w.Handle(activates(2))
	drained(false)
	w.Handle(ReaderLost{2, errTest})
	drained(true)
	w.Handle(registers(3))
	drained(false) // a handshake must be let end: a real reader waits for it
	w.Handle(leaves(3))
	drained(true)
}

func TestWriterCounts(t *testing.T) {
	cfg := testWriterConfig()
	cfg.QueueLimit, cfg.Discard = 2, true
	w := NewWriter(cfg)
	w.Handle(registers(1))
	w.Handle(activates(1))
	for range 5 {
		w.Handle(ends("", ""))
	}
	w.Handle(releases(1, 0))
	want := Counts{Active: true, Sent: 2, Released: 1, Dropped: 3, Held: 1}
	if got := w.Reader(1); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if w.Dropped() != 3 || w.NextStep() != 5 || w.Active() != 1 {
		t.Errorf("dropped %d, next %d, active %d", w.Dropped(), w.NextStep(), w.Active())
	}
	if got := w.Reader(7); got != (Counts{}) {
		t.Errorf("counts of nobody: %+v", got)
	}
}

package cp

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// TestWriterOpening follows the cohort until readers may come.
func TestWriterOpening(t *testing.T) {
	w := NewWriterLeader(WriterConfig{Members: 3, Params: "p", Contact: "c0"})
	hello := func(k, ranks int) WriterEvent {
		return FromMember{k, &WriterHello{Ranks: ranks, Params: "p", Contact: fmt.Sprint("c", k)}}
	}
	step := func(e WriterEvent, want ...string) {
		t.Helper()
		same(t, writerEventText(e), writerActionTexts(w.Handle(e)), want...)
	}
	step(hello(2, 1))
	step(hello(0, 2))
	if w.Ranks() != 0 {
		t.Errorf("%d ranks before every member is there", w.Ranks())
	}
	step(ContactPublished{}) // that nobody asked for
	step(hello(1, 0), "publish contact")
	step(writerScriptRegister(1, []string{"reader"}), "cut [1]: ErrProtocol") // nobody can know of us
	step(ContactPublished{}, "rank 0: welcome at 0 of 3", "rank 1: welcome at 2 of 3", "rank 2: welcome at 2 of 3", "all: started")
	if w.Ranks() != 3 || w.Ended() {
		t.Errorf("%d ranks, ended %v", w.Ranks(), w.Ended())
	}
}

// TestWriterCohortFails: whatever is wrong with the cohort ends the stream for
// every member, with the same words.
func TestWriterCohortFails(t *testing.T) {
	good := func(k int) WriterEvent { return FromMember{k, &WriterHello{Ranks: 1, Params: "p"}} }
	share := func(metadata, attributes, sizes int) WriterEvent {
		return FromMember{1, &Contribute{Metadata: make([]sstmsg.Block, metadata), Attributes: make([]sstmsg.Blob, attributes), Bytes: make([]uint64, sizes)}}
	}
	open := []WriterEvent{good(0), good(1), ContactPublished{}}
	for name, c := range map[string]struct {
		events []WriterEvent
		want   error
		says   []string
	}{
		"other parameters": {
			[]WriterEvent{good(0), FromMember{1, &WriterHello{Ranks: 1, Params: "QueueLimit=2"}}},
			ErrParam, []string{"rank 1", `"QueueLimit=2"`, `"p"`},
		},
		"no ranks at all": {
			[]WriterEvent{FromMember{0, &WriterHello{Params: "p"}}, FromMember{1, &WriterHello{Params: "p"}}},
			ErrParam, []string{"0 ranks"},
		},
		"ranks below zero":      {[]WriterEvent{good(0), FromMember{1, &WriterHello{Ranks: -1, Params: "p"}}}, ErrProtocol, []string{"rank 1", "-1"}},
		"too many ranks":        {[]WriterEvent{good(0), FromMember{1, &WriterHello{Ranks: maxWriterRanks, Params: "p"}}}, ErrParam, nil},
		"two hellos":            {[]WriterEvent{good(1), good(1)}, ErrProtocol, []string{"rank 1"}},
		"a step before hello":   {[]WriterEvent{share(1, 0, 1)}, ErrProtocol, []string{"rank 1", "Contribute"}},
		"no contact file":       {[]WriterEvent{good(0), good(1), ContactPublished{fs.ErrPermission}}, fs.ErrPermission, nil},
		"lost before hello":     {[]WriterEvent{good(0), MemberLost{1, errTest}}, ErrRankLost, []string{"writer rank 1", errTest.Error()}},
		"lost":                  {append(slices.Clone(open), MemberLost{1, nil}), ErrRankLost, []string{"writer rank 1"}},
		"too few records":       {append(slices.Clone(open), share(0, 0, 1)), ErrProtocol, []string{"rank 1", "0 records"}},
		"too many sizes":        {append(slices.Clone(open), share(1, 0, 2)), ErrProtocol, []string{"2 sizes"}},
		"too many attributes":   {append(slices.Clone(open), share(1, 3, 1)), ErrProtocol, []string{"3 attribute records"}},
		"the same step twice":   {append(slices.Clone(open), share(1, 0, 1), share(1, 0, 1)), ErrProtocol, []string{"again true"}},
		"a step of the future":  {append(slices.Clone(open), FromMember{1, &Withdraw{Try: 1}}), ErrProtocol, []string{"try 1 in try 0"}},
		"a step after the last": {append(slices.Clone(open), FromMember{1, &Finished{}}, share(1, 0, 1)), ErrProtocol, []string{"finished true"}},
		"a leader's message":    {append(slices.Clone(open), FromMember{1, &Free{}}), ErrProtocol, []string{"Free"}},
		"wrong identities": {
			append(slices.Clone(open), writerScriptRegister(1, []string{"reader"}), FromMember{1, &Admitted{Reader: 1, Control: []int64{1, 2}, Data: []int64{1}}}),
			ErrProtocol, []string{"2 and 1 identities for 1 ranks"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriterLeader(WriterConfig{Members: 2, Params: "p"})
			var told []Fault
			for _, e := range c.events {
				if w.Failure() != nil {
					t.Fatalf("failed before %s: %v", writerEventText(e), w.Failure())
				}
				for _, a := range w.Handle(e) {
					if all, ok := a.(ToAll); ok {
						if m, ok := all.Msg.(*StreamFailed); ok {
							told = append(told, m.Cause)
						}
					}
				}
			}
			if len(told) != 1 || !errors.Is(told[0], c.want) || !errors.Is(w.Failure(), c.want) || !w.Ended() {
				t.Fatalf("the members were told %v, the leader says %v; want %v", told, w.Failure(), c.want)
			}
			for _, s := range c.says {
				if !strings.Contains(told[0].Error(), s) {
					t.Errorf("%q does not say %q", told[0].Error(), s)
				}
			}
		})
	}
}

// TestWriterResponse looks into the answer to a registration.
func TestWriterResponse(t *testing.T) {
	w := NewWriterLeader(WriterConfig{
		Members: 3, Contact: "here", Wire: sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		Planes: []string{PlaneNative, PlaneEvpath},
	})
	w.Handle(FromMember{0, &WriterHello{Ranks: 2, Contact: "here"}})
	w.Handle(FromMember{1, &WriterHello{Ranks: 1, Contact: "there"}})
	w.Handle(FromMember{2, &WriterHello{Ranks: 1, Contact: "here"}})
	w.Handle(ContactPublished{})
	answer := func(k ReaderKey) *sstmsg.WriterResponse {
		t.Helper()
		r := writerScriptRegister(k, []string{"reader"})
		r.Contact = "tunnel"
		w.Handle(r)
		w.Handle(FromMember{0, &Admitted{Reader: k, Control: []int64{1, 2}, Data: []int64{11, 12}}})
		w.Handle(FromMember{2, &Admitted{Reader: k, Control: []int64{4}, Data: []int64{14}}})
		m, ok := w.Handle(FromMember{1, &Admitted{Reader: k, Control: []int64{3}, Data: []int64{13}}})[0].(SendToReader).Msg.(*sstmsg.WriterResponse)
		if !ok {
			t.Fatal("no response")
		}
		return m
	}
	m := answer(4)
	want := &sstmsg.WriterResponse{
		Condition: 4, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		CP:     []sstmsg.CPWriter{{Contact: "tunnel", WriterID: 1}, {Contact: "tunnel", WriterID: 2}, {Contact: "there", WriterID: 3}, {Contact: "tunnel", WriterID: 4}},
		Evpath: []sstmsg.EvpathWriter{{Contact: "weft evpath rank 0", WriterID: 11}, {Contact: "weft evpath rank 1", WriterID: 12}, {Contact: "weft evpath rank 2", WriterID: 13}, {Contact: "weft evpath rank 3", WriterID: 14}},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
	m.Params.QueueLimit = 99 // one reader's message must not be another's
	if answer(5).Params.QueueLimit == 99 {
		t.Error("two responses share their parameters")
	}
}

// TestWriterAdmit: the members learn what they need to serve a reader.
func TestWriterAdmit(t *testing.T) {
	s := newWriterScript(t, nil)
	e := writerScriptRegister(1, []string{"weft"})
	got := s.leader.Handle(e)[0]
	if d := cmp.Diff(ToAll{&Admit{Reader: 1, Ranks: e.Msg.Evpath, Weft: true, Plane: PlaneEvpath}}, got); d != "" {
		t.Error(d)
	}
	for name, m := range map[string]*sstmsg.ReaderRegister{
		"no ranks":         {},
		"no data contacts": {CP: []sstmsg.CPReader{{ReaderID: 1}}},
	} {
		same(t, name, s.handle(Register{Reader: 2, Msg: m}), "cut [2]: ErrProtocol")
	}
}

// TestWriterStepMessage checks what a real reader looks at without asking.
func TestWriterStepMessage(t *testing.T) {
	s := newWriterScript(t, func(c *WriterConfig) { c.Members, c.QueueLimit, c.Discard = 3, 1, true })
	s.do([]string{"reader", "1"})
	s.do([]string{"activate", "1"})
	share := func(k int, try int64) []WriterAction {
		return s.leader.Handle(FromMember{k, &Contribute{Try: try, Metadata: []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte{byte('a' + k)})}}, Bytes: []uint64{1}}})
	}
	for try := range int64(2) { // the second is discarded
		share(1, try)
		share(0, try)
		m := share(2, try)[0].(SendToReader).Msg.(*sstmsg.TimestepMetadata)
		if m.ReaderID != 101 || m.Step != try || m.CohortSize != 3 || len(m.Attributes) != 3 {
			t.Errorf("step %d to %d: cohort %d, %d attribute blocks", m.Step, m.ReaderID, m.CohortSize, len(m.Attributes))
		}
		var records []byte
		for _, b := range m.Metadata {
			records = append(records, b.Data.Bytes()...)
		}
		if want := []string{"abc", ""}[try]; string(records) != want {
			t.Errorf("step %d has the records %q, want %q", try, records, want)
		}
	}
}

// TestWriterCounts looks at everything that can be asked of a leader.
func TestWriterCounts(t *testing.T) {
	s := newWriterScript(t, func(c *WriterConfig) { c.Members, c.QueueLimit, c.Discard = 2, 2, true })
	for _, e := range []string{
		"reader 1", "activate 1", "register 2", "observer 3", "activate 3",
		"step 10", "share 0 3", "share 1 4", "step 100", "step 100", "release 1 0",
	} {
		s.do(strings.Fields(e))
	}
	w := s.leader
	for k, want := range map[ReaderKey]Counts{
		1: {Active: true, Plane: PlaneEvpath, Sent: 2, Released: 1, Dropped: 2, Held: 1, HeldBytes: 7, Lag: 3},
		2: {Plane: PlaneEvpath, Held: 2, HeldBytes: 17, Lag: 2},
		3: {Active: true, Observer: true, Plane: PlaneEvpath, Sent: 1, Dropped: 3, Held: 1, HeldBytes: 10, Lag: 4},
		7: {},
	} {
		if d := cmp.Diff(want, w.Reader(k)); d != "" {
			t.Errorf("reader %d:\n%s", k, d)
		}
	}
	if w.Dropped() != 2 || w.NextStep() != 4 || w.Active() != 1 || w.Held() != 2 || w.HeldBytes() != 17 || w.Failure() != nil {
		t.Errorf("dropped %d, next %d, active %d, held %d of %d bytes, failure %v", w.Dropped(), w.NextStep(), w.Active(), w.Held(), w.HeldBytes(), w.Failure())
	}
	if got := w.RankBytes(); !slices.Equal(got, []uint64{13, 4}) {
		t.Errorf("bytes of each rank: %v", got)
	}
	w.RankBytes()[0] = 99 // the caller's
	if got := w.RankBytes()[0]; got != 13 {
		t.Errorf("bytes of rank 0: %d", got)
	}
}

// TestWriterLaggards names who a wait is for.
func TestWriterLaggards(t *testing.T) {
	for _, c := range []struct {
		distribution Distribution
		events       string
		want         []ReaderKey
	}{
		{AllToAll, "", nil},
		{AllToAll, "register 1", []ReaderKey{1}}, // it has yet to activate
		{AllToAll, "observer 1", nil},
		{AllToAll, "reader 1, activate 1, reader 2, activate 2, step", []ReaderKey{1, 2}},
		{AllToAll, "reader 1, activate 1, reader 2, activate 2, step, release 1 0, step", []ReaderKey{2}},
		{AllToAll, "reader 1, activate 1, observer 2, activate 2, step, release 1 0", nil},
		{OnDemand, "reader 1, activate 1, reader 2, activate 2, step", []ReaderKey{1, 2}},
		{OnDemand, "reader 1, activate 1, reader 2, activate 2, step, step, ask 2", []ReaderKey{2}},
		{RoundRobin, "reader 1, activate 1, reader 2, activate 2, step, step, release 1 0", []ReaderKey{2}},
	} {
		s := newWriterScript(t, func(cfg *WriterConfig) { cfg.Distribution = c.distribution })
		for e := range strings.SplitSeq(c.events, ", ") {
			if e != "" {
				s.do(strings.Fields(e))
			}
		}
		if got := s.leader.Laggards(); !slices.Equal(got, c.want) {
			t.Errorf("%v: %s: %v, want %v", c.distribution, c.events, got, c.want)
		}
	}
}

// TestF18Split: 20 steps and two reader cohorts are 10 and 10, all of them, none
// twice; on demand each goes to exactly one.
func TestF18Split(t *testing.T) {
	for _, d := range []Distribution{RoundRobin, OnDemand} {
		s := newWriterScript(t, func(c *WriterConfig) { c.Distribution = d })
		for _, k := range []string{"1", "2"} {
			s.do([]string{"reader", k})
			s.do([]string{"activate", k})
		}
		var got [3]int
		seen := map[string]bool{}
		for i := range 20 {
			if d == OnDemand { // readers ask before there is a step, and after
				s.do([]string{"ask", fmt.Sprint(1 + i/2%2)})
			}
			for _, a := range s.do([]string{"step"}) {
				for k := 1; k <= 2; k++ {
					if n, ok := strings.CutPrefix(a, fmt.Sprintf("[%d]: step ", k)); ok && !seen[n] {
						got[k]++
						seen[n] = true
					}
				}
			}
		}
		if got != [3]int{0, 10, 10} || len(seen) != 20 {
			t.Errorf("%v: %v of %d different steps", d, got, len(seen))
		}
	}
}

// TestF15AtFullSpeed writes very many small steps under Block: nobody misses one,
// whatever the limit, and the counts agree at the end.
func TestF15AtFullSpeed(t *testing.T) {
	steps := int64(testutil.Count(t, 10_000, 100_000))
	for _, limit := range []int{1, 4} {
		for _, readers := range []int{1, 3} {
			w := newWriterLoad(t, WriterConfig{QueueLimit: limit}, 1, readers)
			for w.leader.NextStep() < steps {
				w.step(8)
				for i := range readers {
					if i == 0 || w.leader.NextStep()%4 == 0 || w.leader.Held() == limit { // others are slow
						w.read(i)
					}
				}
			}
			for i := range readers {
				w.read(i)
				c := w.leader.Reader(ReaderKey(i + 1))
				if w.seen[i] != steps || c.Sent != steps || c.Released != steps || c.Dropped != 0 {
					t.Errorf("limit %d, reader %d of %d: saw %d of %d steps, counts %+v", limit, i, readers, w.seen[i], steps, c)
				}
			}
			if w.leader.Dropped() != 0 || w.leader.Held() != 0 {
				t.Errorf("dropped %d, held %d", w.leader.Dropped(), w.leader.Held())
			}
		}
	}
}

// TestF09FirstStep: step 0 is not lost on a reader that is on its way, and a late
// one is told where it begins.
func TestF09FirstStep(t *testing.T) {
	s := newWriterScript(t, func(c *WriterConfig) { c.Rendezvous = 1 })
	s.play(`
		register 1 -> all: admit [1]
		step -> all: published 0
		admit 1 0 -> [1]: response, next 0
		activate 1 -> [1]: step 0; all: started`)
	s = newWriterScript(t, nil)
	s.play(`
		step -> all: published 0; all: free 0
		step -> all: published 1; all: free 1
		reader 1 -> all: admit [1]; [1]: response, next 2
		step -> all: published 2
		activate 1 -> [1]: step 2
		step -> [1]: step 3; all: published 3`)
}

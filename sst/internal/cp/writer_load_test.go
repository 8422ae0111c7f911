package cp

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// writerLoad is a leader, its members and readers that do nothing but write and
// read, as fast as they can.
type writerLoad struct {
	t       testing.TB
	leader  *WriterLeader
	members []*WriterMember
	fresh   [][]int64 // by reader: steps that it has not read
	seen    []int64   // by reader: steps that it has read, all from 0 on
	action  int
}

func newWriterLoad(t testing.TB, cfg WriterConfig, members, readers int) *writerLoad {
	cfg.Members = members
	w := &writerLoad{t: t, leader: NewWriterLeader(cfg), fresh: make([][]int64, readers), seen: make([]int64, readers)}
	for range members {
		w.members = append(w.members, NewWriterMember(MemberConfig{Hello: WriterHello{Ranks: 1}}))
	}
	for k := range members {
		w.member(k, MemberStart{})
	}
	w.lead(ContactPublished{})
	for i := range readers {
		w.lead(writerScriptRegister(ReaderKey(i+1), []string{"reader"}))
		w.lead(FromReader{ReaderKey(i + 1), &sstmsg.ReaderActivate{}})
	}
	return w
}

func (w *writerLoad) member(k int, e WriterMemberEvent) {
	for _, a := range w.members[k].Handle(e) {
		switch a := a.(type) {
		case ToLeader:
			w.lead(FromMember{k, a.Msg})
		case AdmitReader:
			w.member(k, ReaderAdmitted{&Admitted{Reader: a.Reader, Control: []int64{1}, Data: []int64{1}}})
		}
	}
}

func (w *writerLoad) lead(e WriterEvent) {
	actions := w.leader.Handle(e)
	w.action += len(actions)
	for _, a := range actions {
		switch a := a.(type) {
		case ToAll:
			for k := range w.members {
				w.member(k, FromLeader(a))
			}
		case ToMember:
			w.member(a.Member, FromLeader{a.Msg})
		case SendToReader:
			if m, ok := a.Msg.(*sstmsg.TimestepMetadata); ok && m.Metadata != nil {
				w.fresh[a.Reader-1] = append(w.fresh[a.Reader-1], m.Step)
			}
		case DropReader:
			w.t.Fatalf("reader %d was dropped: %v", a.Reader, a.Err)
		}
	}
}

// step writes a step, of so many bytes a rank, if the last one is out.
func (w *writerLoad) step(size uint64) {
	for k, m := range w.members {
		if !m.CanBegin() {
			return
		}
		w.member(k, BeginTry{})
	}
	for k := range w.members {
		w.member(k, EndTry{&Contribute{Metadata: writerLoadMetadata, Bytes: []uint64{size}}})
	}
}

var writerLoadMetadata = []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte("m"))}}

// read lets a reader read and release what it has.
func (w *writerLoad) read(i int) {
	for len(w.fresh[i]) > 0 {
		n := w.fresh[i][0]
		w.fresh[i] = w.fresh[i][1:]
		if n != w.seen[i] {
			w.t.Fatalf("reader %d got step %d, want %d", i, n, w.seen[i])
		}
		w.seen[i]++
		w.lead(FromReader{ReaderKey(i + 1), &sstmsg.ReleaseTimestep{Step: n}})
	}
}

// round is a step from its beginning until every reader has released it.
func (w *writerLoad) round() {
	w.step(8)
	for i := range w.fresh {
		w.read(i)
	}
}

// TestWriterAllocations bounds what a small step costs, with one member and one
// reader: small steps are written 20 000 times a second.
func TestWriterAllocations(t *testing.T) {
	w := newWriterLoad(t, WriterConfig{QueueLimit: 4}, 1, 1)
	for range 10 {
		w.round()
	}
	const limit = 24 // the test's own messages are among them
	if n := testing.AllocsPerRun(1000, w.round); n > limit {
		t.Errorf("a step takes %v allocations, more than %d", n, limit)
	} else {
		t.Logf("a step takes %v allocations", n)
	}
}

// TestWriterLinear: the work of the leader for a step is linear in members and in
// readers: so many actions, and no more.
func TestWriterLinear(t *testing.T) {
	for _, c := range []struct{ members, readers int }{{1, 1}, {1000, 1}, {1000, 64}, {1, 64}} {
		w := newWriterLoad(t, WriterConfig{}, c.members, c.readers)
		w.round()
		before := w.action
		w.round()
		// A message to each reader, the verdict and the end of the step, and a word.
		if got, want := w.action-before, c.readers+3; got != want {
			t.Errorf("%d members, %d readers: %d actions, want %d", c.members, c.readers, got, want)
		}
	}
}

func BenchmarkWriterStep(b *testing.B) {
	for _, c := range []struct {
		name             string
		members, readers int
	}{{"1x1", 1, 1}, {"1x64", 1, 64}, {"1000x1", 1000, 1}, {"1000x64", 1000, 64}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWriterLoad(b, WriterConfig{QueueLimit: 4}, c.members, c.readers)
			b.ReportAllocs()
			for b.Loop() {
				w.round()
			}
		})
	}
}

package cp

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// This file simulates the world around the machines: a writer, readers that
// come and go, and between them channels that keep order, hold what is under
// way, and may break at any point of it.

// pipe is one direction of a link. Once it is closed, what is in it still
// arrives, and then the end.
type pipe struct {
	queue  []sstmsg.Message
	closed bool // nothing more can be put in
	told   bool // the receiver knows of the end
}

func (p *pipe) send(m sstmsg.Message) {
	if !p.closed {
		p.queue = append(p.queue, m)
	}
}

// cut breaks the direction and loses all but the first keep messages.
func (p *pipe) cut(keep int) {
	p.queue = p.queue[:min(keep, len(p.queue))]
	p.closed = true
}

// simReader is a reader, its link and what the test knows of it.
type simReader struct {
	key        ReaderKey
	machine    *Reader
	up, down   pipe // to the writer, to the reader
	registered bool // the writer has our ReaderRegister
	gone       bool // the writer has dropped us

	opens      int // results that Open has got
	failed     bool
	activated  bool // we sent ReaderActivate
	closed     bool // we sent ReaderClose
	open       int64
	last       int64   // last step delivered
	absorbed   int64   // last step absorbed
	delivered  []int64 // in order
	released   []int64
	known      map[string]bool // formats that we have
	attributes string
	memory     map[int]int // message -> times freed
	messages   int
	dropped    int64 // discarded steps that arrived
	ended      bool  // told of the end of the stream, without error
	left       bool  // Leave or Cancel was called
}

// stepInfo is what the test knows of a published step.
type stepInfo struct {
	attributes string
	formats    int // how many formats exist as of it
	discarded  bool
	freed      int
	holders    map[ReaderKey]bool // by our own bookkeeping
}

// world is a history in progress.
type world struct {
	t        *rapid.T
	cfg      WriterConfig
	latest   bool
	w        *Writer
	readers  []*simReader
	steps    []*stepInfo
	formats  int
	attrs    string
	finished bool
	nextKey  ReaderKey
}

func newWorld(t *rapid.T) *world {
	cfg := WriterConfig{
		Ranks: 1, Plane: "evpath", PlaneInfo: []string{"p"}, Params: sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		QueueLimit: rapid.IntRange(0, 3).Draw(t, "limit"),
		Discard:    rapid.Bool().Draw(t, "discard"),
		Preload:    rapid.Bool().Draw(t, "preload"),
	}
	return &world{t: t, cfg: cfg, w: NewWriter(cfg), latest: rapid.Bool().Draw(t, "latest")}
}

// alive lists readers whose link the test still has to play.
func (s *world) alive() []*simReader {
	var list []*simReader
	for _, r := range s.readers {
		if !r.up.told || !r.down.told {
			list = append(list, r)
		}
	}
	return list
}

func (s *world) join() {
	r := &simReader{key: -1, open: -1, last: -1, absorbed: -1, known: map[string]bool{}, memory: map[int]int{}}
	cfg := testReaderConfig()
	cfg.Latest = s.latest
	cfg.SpecPreload = rapid.Bool().Draw(s.t, "asks for preload")
	r.machine = NewReader(cfg)
	s.readers = append(s.readers, r)
	s.reader(r, Start{})
}

// reader feeds a reader and carries out its actions.
func (s *world) reader(r *simReader, e ReaderEvent) {
	for _, a := range r.machine.Handle(e) {
		switch a := a.(type) {
		case SendToWriter:
			s.sent(r, a.Msg)
			r.up.send(a.Msg)
		case Opened:
			r.opens++
			for _, p := range a.Response.CP {
				if p.WriterID == 0 {
					s.t.Fatal("opened with an identity of zero")
				}
			}
		case OpenFailed:
			r.opens++
			r.failed = true
		case Absorb:
			s.absorb(r, a.Step)
		case Deliver:
			s.deliver(r, a)
		case EndOfStream:
			s.endOfStream(r, a.Err)
		case Recycle:
			a.Free()
		case DropLink:
			// The shell closes the link: what was sent arrives, nothing comes in.
			r.up.closed = true
			r.down.queue, r.down.closed, r.down.told = nil, true, true
		}
	}
	if r.opens > 1 {
		s.t.Fatalf("Open got %d results", r.opens)
	}
}

// sent checks the order in which a reader may speak.
func (s *world) sent(r *simReader, m sstmsg.Message) {
	if r.closed {
		s.t.Fatalf("%s after ReaderClose", nameMsg(m))
	}
	switch m := m.(type) {
	case *sstmsg.ReaderActivate:
		if r.activated {
			s.t.Fatal("activated twice")
		}
		r.activated = true
	case *sstmsg.ReaderClose:
		if !r.activated {
			s.t.Fatal("ReaderClose before ReaderActivate")
		}
		r.closed = true
	case *sstmsg.ReleaseTimestep:
		if n := len(r.released); n > 0 && r.released[n-1] >= m.Step {
			s.t.Fatalf("released %d after %d", m.Step, r.released[n-1])
		}
		if s.steps[m.Step].discarded {
			s.t.Fatalf("released step %d, which was discarded", m.Step)
		}
		r.released = append(r.released, m.Step)
	}
}

// absorb checks that nothing is missing of formats and attributes, whatever was
// skipped or discarded before.
func (s *world) absorb(r *simReader, m *sstmsg.TimestepMetadata) {
	if m.Step <= r.absorbed {
		s.t.Fatalf("step %d absorbed after %d", m.Step, r.absorbed)
	}
	r.absorbed = m.Step
	for _, f := range m.Formats {
		id := string(f.ID.Bytes())
		if r.known[id] {
			s.t.Fatalf("format %s came twice", id)
		}
		r.known[id] = true
	}
	if b := m.Attributes[0].Data.Bytes(); len(b) > 0 {
		r.attributes = string(b)
	}
	info := s.steps[m.Step]
	if info.discarded != (m.Metadata == nil) {
		s.t.Fatalf("step %d: discarded %v, metadata %v", m.Step, info.discarded, m.Metadata)
	}
	if info.discarded {
		return
	}
	for i := range info.formats {
		if id := fmt.Sprint("f", i); !r.known[id] {
			s.t.Fatalf("step %d came without format %s", m.Step, id)
		}
	}
	if r.attributes != info.attributes {
		s.t.Fatalf("step %d: attributes %q, want %q", m.Step, r.attributes, info.attributes)
	}
}

func (s *world) deliver(r *simReader, a Deliver) {
	n := a.Step.Step
	switch {
	case r.open >= 0:
		s.t.Fatalf("step %d delivered while %d is open", n, r.open)
	case n <= r.last:
		s.t.Fatalf("step %d delivered after %d", n, r.last)
	case s.steps[n].freed > 0 && !r.gone:
		s.t.Fatalf("step %d delivered, but its data are freed", n)
	}
	r.open, r.last = n, n
	r.delivered = append(r.delivered, n)
	a.Free()
}

// endOfStream checks that a clean end comes only after everything.
func (s *world) endOfStream(r *simReader, err error) {
	if err != nil || r.ended {
		return
	}
	r.ended = true
	if !s.finished {
		s.t.Fatal("end of stream before Finish")
	}
	if s.latest {
		return
	}
	want := int64(-1)
	for n, info := range s.steps {
		if !info.discarded && info.holders[r.key] {
			want = int64(n)
		}
	}
	if want > r.last {
		s.t.Fatalf("end of stream after step %d, but step %d was held for us", r.last, want)
	}
}

// writer feeds the writer and carries out its actions.
func (s *world) writer(e WriterEvent) {
	for _, a := range s.w.Handle(e) {
		switch a := a.(type) {
		case SendToReader:
			r := s.byKey(a.Reader)
			if _, isStep := a.Msg.(*sstmsg.TimestepMetadata); isStep && !r.registered {
				s.t.Fatal("a step to a reader that has not registered")
			}
			r.down.send(a.Msg)
		case PushStep:
			if s.steps[a.Step].freed > 0 {
				s.t.Fatalf("step %d pushed after it was freed", a.Step)
			}
		case FreeStep:
			s.free(a.Step)
		case DropReader:
			r := s.byKey(a.Reader)
			if r.gone {
				s.t.Fatalf("reader %d dropped twice", a.Reader)
			}
			r.gone = true
			s.letGo(a.Reader)
		}
	}
	if held := s.w.Held(); s.cfg.QueueLimit > 0 && held > s.cfg.QueueLimit {
		s.t.Fatalf("%d steps held, limit %d", held, s.cfg.QueueLimit)
	}
}

func (s *world) byKey(k ReaderKey) *simReader {
	for _, r := range s.readers {
		if r.key == k {
			return r
		}
	}
	s.t.Fatalf("no reader %d", k)
	return nil
}

// letGo takes a reader out of our own books of holders, but leaves the note
// that a step was once meant for it.
func (s *world) letGo(k ReaderKey) {
	for _, info := range s.steps {
		if info.holders[k] {
			info.holders[k] = false
		}
	}
}

func (s *world) free(n int64) {
	info := s.steps[n]
	info.freed++
	if info.freed > 1 {
		s.t.Fatalf("step %d freed twice", n)
	}
	for k, holds := range info.holders {
		if holds {
			s.t.Fatalf("step %d freed while reader %d needs it", n, k)
		}
	}
}

// publish ends a step, with room or by policy.
func (s *world) publish() {
	if s.finished || !s.w.Room() {
		return
	}
	var p Publish
	p.Metadata = []sstmsg.Block{{}}
	if rapid.Bool().Draw(s.t, "new format") {
		id := fmt.Sprint("f", s.formats)
		s.formats++
		p.Formats = []sstmsg.FormatBlock{{ID: sstmsg.ByteBlob([]byte(id)), Body: sstmsg.ByteBlob([]byte("b"))}}
	}
	if rapid.Bool().Draw(s.t, "new attributes") {
		s.attrs = fmt.Sprint("a", len(s.steps))
		p.Attributes = sstmsg.ByteBlob([]byte(s.attrs))
	}
	info := &stepInfo{attributes: s.attrs, formats: s.formats, holders: map[ReaderKey]bool{}}
	info.discarded = s.cfg.QueueLimit > 0 && s.w.Held() >= s.cfg.QueueLimit
	if info.discarded && !s.cfg.Discard {
		s.t.Fatal("a step was discarded under Block")
	}
	if !info.discarded {
		for _, r := range s.readers {
			if r.registered && !r.gone {
				info.holders[r.key] = true
			}
		}
	}
	if got := s.w.NextStep(); got != int64(len(s.steps)) {
		s.t.Fatalf("next step is %d, want %d", got, len(s.steps))
	}
	s.steps = append(s.steps, info)
	s.writer(p)
}

// toWriter lets one thing arrive at the writer.
func (s *world) toWriter(r *simReader) {
	if len(r.up.queue) == 0 {
		if r.up.closed && !r.up.told {
			r.up.told = true
			r.down.closed = true
			if r.registered {
				s.writer(ReaderLost{r.key, nil})
			}
		}
		return
	}
	m := r.up.queue[0]
	r.up.queue = r.up.queue[1:]
	switch m := m.(type) {
	case *sstmsg.DPQuery:
		r.down.send(&sstmsg.DPQueryResponse{Condition: m.Condition, DataPlane: "evpath"})
	case *sstmsg.ReaderRegister:
		s.nextKey++
		r.key, r.registered = s.nextKey, true
		for _, info := range s.steps {
			if !info.discarded && info.freed == 0 {
				info.holders[r.key] = true
			}
		}
		s.writer(Register{Reader: r.key, Msg: m, Contacts: []string{"c"}, Control: []int64{testWSR}, Data: []int64{43}})
	case *sstmsg.ReleaseTimestep:
		s.steps[m.Step].holders[r.key] = false
		s.writer(FromReader{r.key, m})
	default:
		s.writer(FromReader{r.key, m})
	}
}

// toReader lets one thing arrive at a reader.
func (s *world) toReader(r *simReader) {
	if len(r.down.queue) == 0 {
		if r.down.closed && !r.down.told {
			r.down.told = true
			s.reader(r, WriterLost{errTest})
		}
		return
	}
	m := r.down.queue[0]
	r.down.queue = r.down.queue[1:]
	if t, ok := m.(*sstmsg.TimestepMetadata); ok && t.Metadata == nil {
		r.dropped++
	}
	id := r.messages
	r.messages++
	r.memory[id] = 0
	s.reader(r, FromWriter{Msg: m, Free: func() { r.memory[id]++ }})
}

// breakLink loses some of what is under way in both directions.
func (s *world) breakLink(r *simReader) {
	if r.up.closed && r.down.closed {
		return
	}
	r.up.cut(rapid.IntRange(0, len(r.up.queue)).Draw(s.t, "kept up"))
	r.down.cut(rapid.IntRange(0, len(r.down.queue)).Draw(s.t, "kept down"))
}

// next, release, leave and cancel are calls of a reader's application, which
// makes none after Close.
func (s *world) next(r *simReader) {
	if r.opens == 1 && !r.failed && !r.left && r.open < 0 {
		s.reader(r, Next{})
	}
}

func (s *world) release(r *simReader) {
	if r.open >= 0 {
		n := r.open
		r.open = -1
		s.reader(r, Release{n})
	}
}

func (s *world) leave(r *simReader) {
	r.left = true
	s.reader(r, Leave{errTest})
}

func (s *world) cancel(r *simReader) {
	if r.opens == 0 {
		r.left = true
		s.reader(r, Cancel{errTest})
	}
}

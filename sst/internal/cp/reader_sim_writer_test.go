package cp

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// readerSimMemory is the memory of one message to the leader. Its return wipes
// it, so that whoever still uses it finds out.
type readerSimMemory struct {
	bytes []byte
	step  int64 // of a whole step, else -1
	freed int
}

// piece takes a text into the memory.
func (m *readerSimMemory) piece(text string) sstmsg.Blob {
	b := []byte(text)
	m.bytes = append(m.bytes, b...) // only its length matters here
	return sstmsg.Blob{b}
}

type readerSimMsg struct {
	msg    sstmsg.Message
	memory *readerSimMemory
	pieces []sstmsg.Blob
}

func (m readerSimMsg) free() {
	m.memory.freed++
	for _, b := range m.pieces {
		for _, p := range b {
			clear(p)
		}
	}
}

// readerSimStep is what the model writer has made of a step number.
type readerSimStep uint8

const (
	simWhole     readerSimStep = iota // sent to our reader
	simDiscarded                      // announced as dropped
	simElsewhere                      // given to another reader
)

// readerSimWriter is a model of a writer and of its link with our leader.
type readerSimWriter struct {
	t    *rapid.T
	sim  *readerSim
	weft bool
	mode int64 // StepDistributionMode
	// oneTime is UseOneTimeAttributes: each record has only what is new.
	oneTime int32

	down    []readerSimMsg   // to the leader
	up      []sstmsg.Message // to the writer
	cut     bool             // the writer's end is closed: after down comes the loss
	told    bool             // the leader knows
	dropped bool             // the leader has closed its end

	query, register int32
	planes          []string // that it serves, being Weft
	ranks           int
	planned         string // the data plane that it will name, "" for what the reader likes
	registered      bool
	responded       bool
	activated       bool
	closed          bool // it said WriterClose
	normal          bool // and meant the normal end
	goodbye         bool // it got ReaderClose
	died            bool

	steps      []readerSimStep
	requests   int
	released   map[int64]bool
	lastFreed  int64
	locks      int
	formats    int
	discards   int64
	readerGone bool // the reader's end of the link is closed, and we know it
}

// says puts a message on its way to the leader.
func (w *readerSimWriter) says(m readerSimMsg) {
	if w.cut {
		return
	}
	if m.memory == nil {
		m.memory = &readerSimMemory{step: -1}
	}
	w.sim.memory = append(w.sim.memory, m.memory)
	if w.dropped { // nobody listens: the leader's shell gives the memory back
		m.free()
		return
	}
	w.down = append(w.down, m)
}

// listen handles one message of the leader.
func (w *readerSimWriter) listen() bool {
	if len(w.up) == 0 || w.cut {
		if w.dropped && !w.readerGone {
			w.readerGone = true
			w.cut = true
			return true
		}
		return false
	}
	m := w.up[0]
	w.up = w.up[1:]
	switch m := m.(type) {
	case *sstmsg.DPQuery:
		w.query = m.Condition
		if w.planned == "" {
			w.planned, _ = ChoosePlane(m.Planes, w.planes)
		}
		w.says(readerSimMsg{msg: &sstmsg.DPQueryResponse{Condition: m.Condition, DataPlane: w.planned}})
	case *sstmsg.ReaderRegister:
		if w.registered || len(m.CP) != w.sim.n || len(m.Evpath) != w.sim.n || (m.Observer != 0) != (w.weft && w.sim.cfg.Observer) ||
			w.weft && m.Plane != w.planned || !w.weft && m.Plane != "" {
			w.t.Fatalf("registration %+v", m)
		}
		w.registered, w.register = true, m.Condition
	case *sstmsg.ReaderPlane:
		if !w.responded || w.activated || w.planned != PlaneNative {
			w.t.Fatalf("%s, responded %v, activated %v, plane %s", nameMsg(m), w.responded, w.activated, w.planned)
		}
	case *sstmsg.ReaderActivate:
		if !w.responded || w.activated {
			w.t.Fatal("activated too early, or twice")
		}
		w.activated = true
	case *sstmsg.ReaderRequestStep:
		w.requests++
		if w.mode != distributeOnDemand || w.requests > 1 || w.weft && w.sim.cfg.Observer {
			w.t.Fatalf("request %d, distribution %d", w.requests, w.mode)
		}
	case *sstmsg.ReaderClose:
		if !w.activated {
			w.t.Fatal("ReaderClose before ReaderActivate")
		}
		w.goodbye = true
	}
	return true
}

// respond lets the reader in, or, being Weft, says that the stream has ended.
func (w *readerSimWriter) respond(ended bool) bool {
	if !w.registered || w.responded || w.cut {
		return false
	}
	w.responded = true
	if ended && w.weft {
		w.says(readerSimMsg{msg: &sstmsg.DPQueryResponse{Condition: w.register, DataPlane: PlaneEnded}})
		return true
	}
	m := &sstmsg.WriterResponse{
		Condition: w.register, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5, StepDistributionMode: w.mode, UseOneTimeAttributes: w.oneTime}, NextStep: int64(len(w.steps)),
		CP: []sstmsg.CPWriter{{Contact: "w", WriterID: testWSR}}, Evpath: []sstmsg.EvpathWriter{{Contact: "w", WriterID: 43}},
	}
	for rank := 1; rank < w.ranks; rank++ {
		m.CP = append(m.CP, sstmsg.CPWriter{Contact: "w", WriterID: testWSR + int64(rank)})
		m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: "w", WriterID: 90 + int64(rank)})
	}
	if w.planned == PlaneNative {
		m.Native = make([]sstmsg.NativeWriter, w.ranks)
	}
	w.says(readerSimMsg{msg: m})
	return true
}

// turnAway ends the stream for a reader that has yet to activate, as Weft does.
func (w *readerSimWriter) turnAway(code int32) bool {
	if !w.weft || w.closed || w.cut || w.activated || !w.responded {
		return false
	}
	w.closed, w.normal = true, code == sstmsg.CloseNormal
	w.sim.trouble = true
	w.says(readerSimMsg{msg: &sstmsg.WriterClose{ReaderID: testReader, FinalStep: -1, Code: code}})
	return true
}

// publish makes a step, for us or not.
func (w *readerSimWriter) publish() bool {
	if w.closed || w.cut || w.goodbye {
		return false
	}
	if !w.activated { // others read it
		w.steps = append(w.steps, simElsewhere)
		return true
	}
	kind := []readerSimStep{0, 0, 0, 0, 0, 1, 1, 2}[evenly(w.t, 3, "kind of step")]
	switch {
	case kind == simElsewhere && w.mode == sstmsg.DistributeAll:
		kind = simWhole
	case kind == simWhole && w.mode == distributeOnDemand && w.requests == 0 && (!w.weft || !w.sim.cfg.Observer):
		kind = simElsewhere
	}
	n := int64(len(w.steps))
	w.steps = append(w.steps, kind)
	switch kind {
	case simWhole:
		w.requests = 0
	case simDiscarded:
		w.discards++
	case simElsewhere:
		return true
	}
	w.says(w.message(n, kind))
	return true
}

// message makes the message of a step, with new formats and attributes at
// random.
func (w *readerSimWriter) message(n int64, kind readerSimStep) readerSimMsg {
	s := readerSimMsg{memory: &readerSimMemory{step: -1}}
	keep := func(text string) sstmsg.Blob {
		b := s.memory.piece(text)
		s.pieces = append(s.pieces, b)
		return b
	}
	m := &sstmsg.TimestepMetadata{ReaderID: testReader, Step: n, CohortSize: 1, Attributes: []sstmsg.Block{{}}}
	if evenly(w.t, 2, "new attributes") == 1 {
		m.Attributes[0].Data = keep(fmt.Sprint("attribute", n))
	}
	if kind == simWhole {
		s.memory.step = n
		m.Metadata = []sstmsg.Block{{Data: keep(fmt.Sprint("step", n))}}
		m.PreloadMode = int32(evenly(w.t, 2, "preload mode") % 3)
		if evenly(w.t, 1, "new format") == 1 {
			m.Formats = []sstmsg.FormatBlock{{ID: keep(fmt.Sprint("format", w.formats)), Body: keep("body")}}
			w.formats++
		}
	}
	s.msg = m
	return s
}

// finish says WriterClose. Any other code than that of the normal end is Weft's.
func (w *readerSimWriter) finish(code int32) bool {
	if w.closed || w.cut || !w.activated || w.goodbye {
		return false
	}
	if !w.weft {
		code = sstmsg.CloseNormal
	}
	w.closed, w.normal = true, code == sstmsg.CloseNormal
	reason := ""
	if !w.normal {
		reason = "evicted: slow: by 3 steps"
		w.sim.trouble = true
	}
	w.says(readerSimMsg{msg: &sstmsg.WriterClose{ReaderID: testReader, FinalStep: int64(len(w.steps)) - 1, Code: code, Reason: reason}})
	return true
}

// hangUp closes the link once nobody needs the writer any more.
func (w *readerSimWriter) hangUp() bool {
	if w.cut || !(w.closed && (!w.normal || w.drained()) || w.goodbye && len(w.up) == 0) {
		return false
	}
	w.cut = true
	return true
}

// saidGoodbye reports whether ReaderClose has come, or is on its way.
func (w *readerSimWriter) saidGoodbye() bool {
	is := func(m sstmsg.Message) bool { _, is := m.(*sstmsg.ReaderClose); return is }
	return w.goodbye || slices.ContainsFunc(w.up, is)
}

func (w *readerSimWriter) drained() bool {
	for n, kind := range w.steps {
		if kind == simWhole && !w.released[int64(n)] {
			return false
		}
	}
	return true
}

// die breaks the link, and loses some of what is under way.
func (w *readerSimWriter) die() {
	if w.cut {
		return
	}
	w.cut, w.died = true, true
	w.sim.trouble = true
	keep := rapid.IntRange(0, len(w.down)).Draw(w.t, "kept of the writer's messages")
	for _, m := range w.down[keep:] {
		m.free() // never came
	}
	w.down = w.down[:keep]
}

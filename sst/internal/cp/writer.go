package cp

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// ReaderKey names one reader cohort of a writer. The shell issues the keys; it
// never uses one twice.
type ReaderKey int

// WriterConfig is what a writer machine needs to know.
type WriterConfig struct {
	Ranks      int    // writer ranks that the stream has
	Plane      string // data plane served to everybody
	QueueLimit int    // steps not yet released by all readers; 0 means no limit
	Discard    bool   // queue full: drop the new step instead of waiting
	Preload    bool   // push whole blocks to readers that ask for it
	Params     sstmsg.Params
	PlaneInfo  []string // text about each rank's data plane; never parsed, never empty
}

// WriterEvent is something that happened to a writer.
type WriterEvent interface{ writerEvent() }

// Events of a writer.
type (
	// Register is a ReaderRegister. There is one entry a rank of ours: how the
	// reader reaches it, and its fresh control and data identities.
	Register struct {
		Reader   ReaderKey
		Msg      *sstmsg.ReaderRegister
		Contacts []string
		Control  []int64
		Data     []int64
	}
	// FromReader is any later message of a reader.
	FromReader struct {
		Reader ReaderKey
		Msg    sstmsg.Message
	}
	// ReaderLost says that the control link of a reader is gone.
	ReaderLost struct {
		Reader ReaderKey
		Err    error
	}
	// Publish ends a step. The caller has made sure of Room.
	Publish struct {
		Formats    []sstmsg.FormatBlock // new with this step
		Metadata   []sstmsg.Block       // one a rank
		Attributes sstmsg.Blob          // rank 0's record with all attributes; nil: as before
		Large      bool                 // too large to be pushed
	}
	// Finish says that no step follows.
	Finish struct{}
)

func (Register) writerEvent()   {}
func (FromReader) writerEvent() {}
func (ReaderLost) writerEvent() {}
func (Publish) writerEvent()    {}
func (Finish) writerEvent()     {}

// WriterAction is something the shell must do, in order.
type WriterAction interface{ writerAction() }

// Actions of a writer.
type (
	// SendToReader sends on the control link of a reader.
	SendToReader struct {
		Reader ReaderKey
		Msg    sstmsg.Message
	}
	// PushStep sends every rank's data block of the step to every rank of the
	// reader.
	PushStep struct {
		Reader ReaderKey
		Step   int64
	}
	// FreeStep says that nobody needs the step's data any more.
	FreeStep struct{ Step int64 }
	// DropReader forgets the reader and its link. Err is nil if it left by itself.
	DropReader struct {
		Reader ReaderKey
		Err    error
	}
	// Changed wakes whoever waits for readers, for room, or for the end.
	Changed struct{}
)

func (SendToReader) writerAction() {}
func (PushStep) writerAction()     {}
func (FreeStep) writerAction()     {}
func (DropReader) writerAction()   {}
func (Changed) writerAction()      {}

// heldStep is a step that some reader has not released.
type heldStep struct {
	number     int64
	metadata   []sstmsg.Block
	attributes sstmsg.Blob // record with all attributes as of this step
	version    int         // Writer.version as of this step
	formats    int         // length of Writer.formats as of this step
	large      bool
	holders    map[ReaderKey]struct{}
}

// reader is what a writer knows of one reader cohort.
type reader struct {
	controlID int64 // RS_Stream of its rank 0
	active    bool
	preload   bool
	formats   int // how many of Writer.formats it has
	version   int // of the attributes it has
	closeSent bool
	received  int64 // steps sent to it
	dropped   int64 // steps discarded while it was active
	released  int64
}

// Writer is the machine of a writer rank.
type Writer struct {
	cfg        WriterConfig
	next       int64 // number of the next step
	last       int64 // number of the last step provided, -1 for none
	formats    []sstmsg.FormatBlock
	attributes sstmsg.Blob
	version    int // how often the attributes have changed
	steps      []*heldStep
	readers    map[ReaderKey]*reader
	order      []ReaderKey // readers in order of registration: actions must not depend on map order
	finished   bool
	dropped    int64
}

// NewWriter returns the machine of a stream without readers and steps.
func NewWriter(cfg WriterConfig) *Writer {
	return &Writer{cfg: cfg, last: -1, readers: map[ReaderKey]*reader{}}
}

// NextStep returns the number that the next step will have.
func (w *Writer) NextStep() int64 { return w.next }

// Active returns the number of readers that have activated.
func (w *Writer) Active() int {
	n := 0
	for _, r := range w.readers {
		if r.active {
			n++
		}
	}
	return n
}

// Room reports whether a step can be published now. It always can if the
// policy is to discard.
func (w *Writer) Room() bool {
	return w.cfg.Discard || w.cfg.QueueLimit == 0 || len(w.steps) < w.cfg.QueueLimit
}

// Held returns the number of steps that some reader has not released.
func (w *Writer) Held() int { return len(w.steps) }

// Drained reports whether nothing is left to do after Finish: no reader holds
// a step or is still opening.
func (w *Writer) Drained() bool {
	if !w.finished || len(w.steps) > 0 {
		return false
	}
	for _, r := range w.readers {
		if !r.active {
			return false
		}
	}
	return true
}

// Laggards returns the readers that a wait is for: those that hold the oldest
// step, or, if there is none, that are still opening.
func (w *Writer) Laggards() []ReaderKey {
	var keys []ReaderKey
	for _, k := range w.order {
		late := !w.readers[k].active
		if len(w.steps) > 0 {
			_, late = w.steps[0].holders[k]
		}
		if late {
			keys = append(keys, k)
		}
	}
	return keys
}

// Counts are the steps of one reader as its writer counts them.
type Counts struct {
	Active                  bool
	Sent, Released, Dropped int64
	Held                    int
}

// Reader returns the counts of one reader.
func (w *Writer) Reader(k ReaderKey) Counts {
	r := w.readers[k]
	if r == nil {
		return Counts{}
	}
	c := Counts{Active: r.active, Sent: r.received, Released: r.released, Dropped: r.dropped}
	for _, s := range w.steps {
		if _, ok := s.holders[k]; ok {
			c.Held++
		}
	}
	return c
}

// Dropped returns how many steps the policy discarded.
func (w *Writer) Dropped() int64 { return w.dropped }

// Handle takes one event and returns what to do.
func (w *Writer) Handle(e WriterEvent) []WriterAction {
	switch e := e.(type) {
	case Register:
		return w.register(e)
	case FromReader:
		return w.receive(e)
	case ReaderLost:
		return w.drop(e.Reader, orEOF(e.Err))
	case Publish:
		return w.publish(e)
	case Finish:
		return w.finish()
	}
	return nil
}

// register accepts a reader at once: it need not wait for the application. From
// now on the reader holds every step that it will be sent.
func (w *Writer) register(e Register) []WriterAction {
	if _, known := w.readers[e.Reader]; known || len(e.Msg.CP) == 0 {
		return []WriterAction{DropReader{e.Reader, fmt.Errorf("ReaderRegister of %d ranks, known %v: %w", len(e.Msg.CP), known, errUnexpected)}}
	}
	r := &reader{controlID: e.Msg.CP[0].ReaderID, preload: w.cfg.Preload && e.Msg.SpecPreload != 0}
	w.readers[e.Reader] = r
	w.order = append(w.order, e.Reader)
	first := w.next
	for _, s := range w.steps {
		s.holders[e.Reader] = struct{}{}
		first = min(first, s.number)
	}
	params := w.cfg.Params
	m := &sstmsg.WriterResponse{Condition: e.Msg.Condition, Params: &params, NextStep: first}
	for rank := range w.cfg.Ranks {
		m.CP = append(m.CP, sstmsg.CPWriter{Contact: e.Contacts[rank], WriterID: e.Control[rank]})
		m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: w.cfg.PlaneInfo[rank], WriterID: e.Data[rank]})
	}
	return []WriterAction{SendToReader{e.Reader, m}}
}

func (w *Writer) receive(e FromReader) []WriterAction {
	r := w.readers[e.Reader]
	if r == nil {
		return nil
	}
	switch m := e.Msg.(type) {
	case *sstmsg.ReaderActivate:
		return w.activate(e.Reader, r)
	case *sstmsg.ReleaseTimestep:
		return w.release(e.Reader, r, m.Step)
	case *sstmsg.LockReaderDefinitions:
		return nil // we never announce a locked pattern, so nothing follows from it
	case *sstmsg.ReaderClose:
		return w.drop(e.Reader, nil)
	}
	return w.drop(e.Reader, fmt.Errorf("%s: %w", sstmsg.Name(e.Msg), errUnexpected))
}

func (w *Writer) activate(k ReaderKey, r *reader) []WriterAction {
	if r.active {
		return nil
	}
	r.active = true
	var actions []WriterAction
	for _, s := range w.steps {
		if _, ok := s.holders[k]; ok {
			actions = append(actions, w.send(k, r, s)...)
		}
	}
	if w.finished {
		actions = append(actions, w.sendClose(k, r))
	}
	return append(actions, Changed{})
}

// send hands a step to an active reader, with what it lacks of formats and
// attributes.
func (w *Writer) send(k ReaderKey, r *reader, s *heldStep) []WriterAction {
	m := &sstmsg.TimestepMetadata{
		ReaderID:   r.controlID,
		Step:       s.number,
		CohortSize: int32(w.cfg.Ranks),
		Metadata:   s.metadata,
		Attributes: w.attributesFor(r, s),
	}
	if s.formats > r.formats {
		m.Formats = w.formats[r.formats:s.formats]
		r.formats = s.formats
	}
	r.received++
	if !r.preload || s.large {
		return []WriterAction{SendToReader{k, m}}
	}
	m.PreloadMode = 1
	return []WriterAction{PushStep{k, s.number}, SendToReader{k, m}}
}

// attributesFor returns one block a rank, rank 0's with the attributes if they
// are new to the reader. The list is never nil: real readers look into it.
func (w *Writer) attributesFor(r *reader, s *heldStep) []sstmsg.Block {
	blocks := make([]sstmsg.Block, w.cfg.Ranks)
	if s.version > r.version {
		blocks[0].Data = s.attributes
		r.version = s.version
	}
	return blocks
}

func (w *Writer) release(k ReaderKey, r *reader, step int64) []WriterAction {
	var actions []WriterAction
	for _, s := range w.steps {
		if _, ok := s.holders[k]; ok && s.number == step && r.active {
			delete(s.holders, k)
			r.released++
		}
	}
	return append(actions, w.collect()...)
}

// collect frees the steps that nobody holds.
func (w *Writer) collect() []WriterAction {
	var actions []WriterAction
	kept := w.steps[:0]
	for _, s := range w.steps {
		if len(s.holders) > 0 {
			kept = append(kept, s)
			continue
		}
		actions = append(actions, FreeStep{s.number})
	}
	clear(w.steps[len(kept):])
	w.steps = kept
	if actions != nil {
		actions = append(actions, Changed{})
	}
	return actions
}

// drop ends a reader, whatever state it is in.
func (w *Writer) drop(k ReaderKey, err error) []WriterAction {
	if _, ok := w.readers[k]; !ok {
		return nil
	}
	delete(w.readers, k)
	for i, o := range w.order {
		if o == k {
			w.order = append(w.order[:i:i], w.order[i+1:]...)
			break
		}
	}
	for _, s := range w.steps {
		delete(s.holders, k)
	}
	actions := []WriterAction{DropReader{k, err}}
	actions = append(actions, w.collect()...)
	return append(actions, Changed{})
}

func (w *Writer) publish(e Publish) []WriterAction {
	number := w.next
	w.next++
	w.formats = append(w.formats, e.Formats...)
	if e.Attributes != nil {
		w.attributes = e.Attributes
		w.version++
	}
	full := w.cfg.QueueLimit > 0 && len(w.steps) >= w.cfg.QueueLimit
	if full {
		return append(w.discard(number), FreeStep{number})
	}
	w.last = number
	if len(w.readers) == 0 {
		return []WriterAction{FreeStep{number}}
	}
	s := &heldStep{
		number: number, metadata: e.Metadata, attributes: w.attributes, version: w.version,
		formats: len(w.formats), large: e.Large, holders: map[ReaderKey]struct{}{},
	}
	w.steps = append(w.steps, s)
	var actions []WriterAction
	for _, k := range w.order {
		s.holders[k] = struct{}{}
		if r := w.readers[k]; r.active {
			actions = append(actions, w.send(k, r, s)...)
		}
	}
	return actions
}

// discard tells the readers that a step was dropped (docs/wire/sst.md §7.4). Its
// attributes come with the next step that is not, as its formats do: their
// record may need one of them.
func (w *Writer) discard(number int64) []WriterAction {
	w.dropped++
	var actions []WriterAction
	for _, k := range w.order {
		r := w.readers[k]
		if !r.active {
			continue
		}
		r.dropped++
		m := &sstmsg.TimestepMetadata{ReaderID: r.controlID, Step: number, CohortSize: int32(w.cfg.Ranks), Attributes: make([]sstmsg.Block, w.cfg.Ranks)}
		actions = append(actions, SendToReader{k, m})
	}
	return actions
}

func (w *Writer) finish() []WriterAction {
	if w.finished {
		return nil
	}
	w.finished = true
	var actions []WriterAction
	for _, k := range w.order {
		if r := w.readers[k]; r.active {
			actions = append(actions, w.sendClose(k, r))
		}
	}
	return append(actions, Changed{})
}

func (w *Writer) sendClose(k ReaderKey, r *reader) WriterAction {
	r.closeSent = true
	return SendToReader{k, &sstmsg.WriterClose{ReaderID: r.controlID, FinalStep: w.last}}
}

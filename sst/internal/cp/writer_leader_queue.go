package cp

import (
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// stepUse is why a step is kept.
type stepUse uint8

const (
	useNone  stepUse = iota
	useLook          // only observers have it: it takes memory, but no room
	useSpare         // kept for readers to come: it takes room until that is needed
	useQueue         // a reader has it, will get it, or may take it
)

// heldStep is a published step that the members keep data of.
type heldStep struct {
	number     int64
	metadata   []sstmsg.Block
	native     []sstmsg.Block // where the data of each rank lies, nil if nobody can look at any
	attributes *attributeSet  // as of this step
	formats    int            // length of WriterLeader.formats as of this step
	bytes      []uint64       // of each rank
	size       uint64         // of all ranks
	longest    uint64         // of bytes
	coarse     bool           // its arrays are large, as far as the metadata tell

	refs     int  // readers that it is kept for
	looks    int  // observers that have it
	open     bool // RoundRobin, OnDemand: no reader has it yet, or any more
	wanted   bool // while it was open there was a reader that could take it
	reserved bool // one of the newest steps
	precious bool // the first step, which is kept
	use      stepUse
}

// queue is the steps that the members keep data of, and what they add up to. The
// precious step is not in the counts of steps; bytes are of all.
type queue struct {
	cfg        *WriterConfig
	steps      stepList
	open       stepList // steps with heldStep.open
	reserve    stepList // steps with heldStep.reserved
	waiting    int      // steps in use
	spare      int      // steps kept for readers to come
	busy       int      // steps in use, the precious one included
	bytes      uint64   // of steps in use or spare
	spareBytes uint64   // of spare steps that give way
	held       uint64   // of all steps
	rankBytes  []uint64 // the same for each rank
	free       []*heldStep
}

func newQueue(cfg *WriterConfig) queue { return queue{cfg: cfg} }

// fits reports whether a new step has room, if spare ones give way to it. A step
// that is larger than the limit has, if it waits for nobody.
func (q *queue) fits(size uint64) bool {
	if limit := q.cfg.QueueLimit; limit > 0 && q.waiting >= limit {
		return false
	}
	limit, bytes := q.cfg.QueueLimitBytes, q.bytes-q.spareBytes
	return limit == 0 || q.busy == 0 || bytes <= limit && size <= limit-bytes
}

// over reports whether a spare step has to give way to a new one.
func (q *queue) over(size uint64) bool {
	limit, bytes := q.cfg.QueueLimit, q.cfg.QueueLimitBytes
	return limit > 0 && q.waiting+q.spare >= limit || bytes > 0 && (q.bytes > bytes || size > bytes-q.bytes)
}

// count adds a step to the sums, or with -1 takes it off.
func (q *queue) count(s *heldStep, by int) {
	switch s.use {
	case useQueue:
		q.busy += by
		if !s.precious {
			q.waiting += by
		}
	case useSpare:
		if !s.precious {
			q.spare += by
			q.spareBytes += uint64(by) * s.size
		}
	default:
		return
	}
	q.bytes += uint64(by) * s.size // modulo 2^64: taking off is adding the complement
}

// unused returns a step to be filled in, of which only the memory means anything.
func (q *queue) unused() *heldStep {
	n := len(q.free)
	if n == 0 {
		return &heldStep{}
	}
	s := q.free[n-1]
	q.free = q.free[:n-1]
	return s
}

// newStep makes the next step of the shares of the members.
func (w *WriterLeader) newStep() *heldStep {
	q := &w.queue
	s := q.unused()
	*s = heldStep{number: w.next, attributes: w.attributes, formats: len(w.formats), bytes: s.bytes[:0], size: w.size}
	w.attributes.shared = true
	s.precious = w.cfg.FirstPrecious && s.number == 0
	s.open = w.cfg.Distribution != AllToAll
	if len(w.members) == 1 {
		s.metadata = w.members[0].share.Metadata
	} else {
		s.metadata = make([]sstmsg.Block, 0, w.ranks)
		for k := range w.members {
			s.metadata = append(s.metadata, w.members[k].share.Metadata...)
		}
	}
	s.native = w.places()
	s.coarse = coarse(s.metadata, s.size)
	for k := range w.members {
		s.bytes = append(s.bytes, w.members[k].share.Bytes...)
	}
	for rank, b := range s.bytes {
		q.rankBytes[rank] += b
		s.longest = max(s.longest, b)
	}
	q.held += s.size
	q.steps.push(s)
	if s.open {
		q.open.push(s)
	}
	return s
}

// places puts together what the shares of the members say about where their data
// lies, nil if that is nothing.
func (w *WriterLeader) places() []sstmsg.Block {
	var all []sstmsg.Block
	for k := range w.members {
		m := &w.members[k]
		if !slices.ContainsFunc(m.share.Native, func(b sstmsg.Block) bool { return b.Data.Len() > 0 }) {
			continue
		}
		if len(w.members) == 1 {
			return m.share.Native
		}
		if all == nil {
			all = make([]sstmsg.Block, w.ranks)
		}
		copy(all[m.base:], m.share.Native)
	}
	return all
}

// coarseness is how many bytes of data a byte of metadata must stand for in a step
// of large arrays. Each block has some 100 bytes of metadata, so these are of 100 KiB
// and more.
const coarseness = 1 << 10

// coarse reports whether the arrays of a step of the given size are large: only
// then to ask for each is no burden.
func coarse(metadata []sstmsg.Block, size uint64) bool {
	n := 0
	for i := range metadata {
		n += metadata[i].Data.Len()
	}
	return uint64(n) <= size/coarseness
}

// useOf says why a step has to be kept.
func (w *WriterLeader) useOf(s *heldStep) stepUse {
	if s.open && !s.wanted {
		s.wanted = w.taken(s)
	}
	switch {
	case s.refs > 0 || s.open && w.taken(s):
		return useQueue
	case (s.reserved || s.precious && !w.closing) && (s.open || w.cfg.Distribution == AllToAll):
		return useSpare
	case s.looks > 0:
		return useLook
	}
	return useNone
}

// update counts a step anew after anything about it has changed, and frees it if
// nothing keeps it.
func (w *WriterLeader) update(s *heldStep) {
	use := w.useOf(s)
	if use != s.use {
		w.queue.count(s, -1)
		s.use = use
		w.queue.count(s, +1)
	}
	if s.open && use < useSpare {
		w.queue.open.remove(s.number)
		s.open = false
		if s.wanted {
			w.dropped++
		}
	}
	if use == useNone {
		w.freeStep(s)
	}
}

func (w *WriterLeader) freeStep(s *heldStep) {
	q := &w.queue
	q.steps.remove(s.number)
	q.held -= s.size
	for rank, b := range s.bytes {
		q.rankBytes[rank] -= b
	}
	if s.reserved {
		q.reserve.remove(s.number)
	}
	w.toAll(&Free{s.number})
	w.emit(Changed{})
	s.metadata, s.native, s.attributes = nil, nil, nil
	q.free = append(q.free, s)
}

// keep makes a new step one of the newest, which are kept for readers to come.
func (w *WriterLeader) keep(s *heldStep) {
	q := &w.queue
	if w.cfg.Reserve <= 0 || s.precious {
		return
	}
	s.reserved = true
	q.reserve.push(s)
	for q.reserve.len() > w.cfg.Reserve {
		w.unreserve(0)
	}
}

func (w *WriterLeader) unreserve(i int) {
	s := w.queue.reserve.at(i)
	w.queue.reserve.removeAt(i)
	s.reserved = false
	w.update(s)
}

// giveWay makes room for a step that fits, at the cost of the oldest spare ones.
func (w *WriterLeader) giveWay(size uint64) {
	for q, i := &w.queue, 0; i < q.reserve.len() && q.over(size); {
		if q.reserve.at(i).use == useSpare {
			w.unreserve(i)
		} else {
			i++
		}
	}
}

// letGoSpare frees what is kept for readers to come.
func (w *WriterLeader) letGoSpare() {
	q := &w.queue
	for q.reserve.len() > 0 {
		w.unreserve(0)
	}
	if q.steps.len() > 0 && q.steps.at(0).precious {
		w.update(q.steps.at(0))
	}
}

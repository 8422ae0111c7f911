package sst

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// sentBlocks is where the blocks of a writer's steps went, asked for or pushed. A
// block on its way keeps the memory of its step. Who gives a step back has its
// blocks, as a rule; who asks, gives back and takes nothing off its connection
// could make a writer keep every step, in spite of all limits. The writer's mu
// guards it.
type sentBlocks struct {
	steps map[int64][]sentOn        // in memory
	late  map[carrier.Link][]uint64 // records of steps that are not, when they were last looked at
}

// sentOn is the last block of a step that went out on a link.
type sentOn struct {
	link   carrier.Link
	record uint64 // about the how manyth record of the link it is
}

// maxLate is how many steps that it gave back a peer may leave in our queue.
const maxLate = 16

func newSentBlocks() sentBlocks {
	return sentBlocks{map[int64][]sentOn{}, map[carrier.Link][]uint64{}}
}

// forget forgets a link that is lost.
func (b *sentBlocks) forget(l carrier.Link) {
	delete(b.late, l)
	for step, list := range b.steps {
		b.steps[step] = slices.DeleteFunc(list, func(s sentOn) bool { return s.link == l })
	}
}

// noteBlock notes that a block goes out on a link. The caller holds mu.
func (w *Writer) noteBlock(step int64, l carrier.Link) {
	if w.steps[step] == nil {
		return // it was given back before
	}
	info := l.Info()
	on := sentOn{l, info.MessagesOut + uint64(info.QueuedRecords) + 1}
	list := w.sent.steps[step]
	if i := slices.IndexFunc(list, func(s sentOn) bool { return s.link == l }); i >= 0 {
		list[i] = on
		return
	}
	w.sent.steps[step] = append(list, on)
}

// checkBlocks drops links on which too much of what nobody needs any more still
// waits, now that one more step is like that. The caller holds mu.
func (w *Writer) checkBlocks(step int64) {
	list, ok := w.sent.steps[step]
	if !ok {
		return
	}
	delete(w.sent.steps, step)
	for _, s := range list {
		out := s.link.Info().MessagesOut
		late := slices.DeleteFunc(append(w.sent.late[s.link], s.record), func(n uint64) bool { return n <= out })
		if len(late) == 0 {
			delete(w.sent.late, s.link)
			continue
		}
		if w.sent.late[s.link] = late; len(late) > maxLate {
			s.link.Abort(fmt.Errorf("%w: %d steps were given back, and their data is not taken off the connection", ErrProtocol, len(late)))
		}
	}
}

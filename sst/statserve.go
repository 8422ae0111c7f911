package sst

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// This file is the writer's Side of QueryStat. It runs on the link's goroutine
// and changes nothing but the link's count of answers.

// maxAnswers is how many answers may wait on one link. Who asks reads what it
// asked for; who does not must not fill our memory.
const maxAnswers = 8

// stat answers whoever asks for the statistics of the stream.
func (w *Writer) stat(l carrier.Link, m *sstmsg.StatQuery) {
	if !w.session.beginAnswer(l) {
		l.Abort(fmt.Errorf("%w: more than %d questions, and no answer is read", ErrProtocol, maxAnswers))
		return
	}
	text, err := w.Stat().encode(maxStatText)
	if err != nil { // told as "nothing": the asker can do nothing about it
		w.session.log.Warn("statistics cannot be told", "stream", w.path, "error", err)
	}
	reply := &sstmsg.StatReply{Condition: m.Condition, Text: sstmsg.ByteBlob(text)}
	w.session.post(l, reply, sstmsg.Options{Weft: true}, func(error) { w.session.endAnswer(l) })
}

// statEnded answers who asks for a stream that has ended: nothing is the sign.
func (s *Session) statEnded(l carrier.Link, condition int32) {
	s.post(l, &sstmsg.StatReply{Condition: condition}, sstmsg.Options{Weft: true}, nil)
}

// beginAnswer counts an answer that is about to be queued; false if there are
// too many.
func (s *Session) beginAnswer(l carrier.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.linkUse(l)
	if u.answers == maxAnswers {
		return false
	}
	u.answers++
	return true
}

// endAnswer takes one off. The link may be forgotten by now.
func (s *Session) endAnswer(l carrier.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.links[l]; u != nil {
		u.answers--
	}
}

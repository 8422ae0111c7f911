package cp

import (
	"errors"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// writerSimModel says what must hold in every history, by books of its own: which
// step is kept for whom, written down from what was sent and given back.
type writerSimModel struct {
	s       *writerSim
	steps   []*writerSimStep // by number
	last    int64            // newest one that was published
	lost    int64            // steps that no reader got, though one wanted it
	discard int64
	warned  bool
	chased  int // steps after which lags were looked at
}

// writerSimStep is a step in the books.
type writerSimStep struct {
	number    int64
	size      uint64
	shares    map[int]*writerSimShare
	discarded bool
	freed     bool
	holders   []*writerSimReader // for whom it is kept, observers aside
	lookers   []*writerSimReader
	dealt     int  // readers that it was dealt to, one after the other
	released  bool // some reader was done with it
	lost      bool // no reader can get it any more
	wanted    bool // undealt, but there was a reader to come for it
}

func (m *writerSimModel) reset(s *writerSim) { m.s, m.last = s, -1 }

func (m *writerSimModel) all() bool { return m.s.cfg.Distribution == AllToAll }

// wants reports whether a reader may still be sent a step that nobody has.
func (m *writerSimModel) wants(r *writerSimReader, n int64) bool {
	if r.observer || r.gone || r.closed {
		return false
	}
	if !r.answered {
		return true
	}
	return r.next <= n && (len(r.whole) == 0 || r.whole[len(r.whole)-1] < n)
}

func (m *writerSimModel) wantedBy(n int64) *writerSimReader {
	for _, r := range m.s.readers {
		if m.wants(r, n) {
			return r
		}
	}
	return nil
}

// counted reports whether a step takes room in the queue that nothing can take
// away.
func (m *writerSimModel) counted(st *writerSimStep) bool {
	if st.freed || st.discarded {
		return false
	}
	return len(st.holders) > 0 || m.undealt(st) && m.wantedBy(st.number) != nil
}

// undealt reports whether a step is to be dealt out, and nobody has it.
func (m *writerSimModel) undealt(st *writerSimStep) bool {
	return !m.all() && !st.released && !st.lost && !st.freed && len(st.holders) == 0
}

// full says whether a step of that size has no room.
func (m *writerSimModel) full(size uint64) bool {
	cfg := &m.s.cfg
	steps, busy, bytes := 0, 0, uint64(0)
	for _, st := range m.steps {
		precious := cfg.FirstPrecious && st.number == 0
		if m.counted(st) {
			busy++
			if !precious {
				steps++
			}
			bytes += st.size
		} else if precious && !st.freed && m.kept(st) {
			bytes += st.size
		}
	}
	if cfg.QueueLimit > 0 && steps >= cfg.QueueLimit {
		return true
	}
	return cfg.QueueLimitBytes > 0 && busy > 0 && bytes+size > cfg.QueueLimitBytes
}

// kept reports whether the precious step is kept although no reader needs it.
func (m *writerSimModel) kept(st *writerSimStep) bool {
	return m.all() || m.undealt(st)
}

// verdict notes the end of a try, which must be one that the rules allow.
func (m *writerSimModel) verdict(v Verdict) {
	s := m.s
	if v.Outcome == Published && v.Step == int64(len(m.steps)) {
		m.step(v.Step) // sent to nobody
	}
	next := int64(len(m.steps))
	if v.Outcome == Published {
		next--
	}
	if v.Try != int64(len(s.verdicts)) || v.Step != next {
		s.t.Fatalf("verdict on try %d, step %d; want try %d, step %d", v.Try, v.Step, len(s.verdicts), next)
	}
	shares := s.shares[v.Try]
	if v.Outcome == Aborted {
		if v.Cause.None() || !v.Cause.Is(ErrStepAborted) {
			s.t.Fatalf("try %d was aborted because of %v", v.Try, v.Cause)
		}
		return
	}
	if len(shares) != len(s.members) {
		s.t.Fatalf("step %d came about with %d of %d shares", v.Step, len(shares), len(s.members))
	}
	if v.Outcome == Published {
		st := m.steps[v.Step]
		st.wanted = !m.all() && len(st.holders) == 0 && m.wantedBy(v.Step) != nil
		return
	}
	if size := m.sizeOf(shares); !s.cfg.Discard || !m.full(size) && !crammed(shares) {
		s.t.Fatalf("step %d of %d bytes was discarded: policy Discard %v, queue full %v, members %v", v.Step, size, s.cfg.Discard, m.full(size), crammed(shares))
	}
	m.discard++
	for _, r := range s.readers {
		if r.active && r.weft && !r.gone && !r.closed && (r.observer || !m.all()) {
			r.due = append(r.due, v.Step)
		}
	}
	m.steps = append(m.steps, &writerSimStep{number: v.Step, discarded: true, freed: true})
}

// sizeOf returns the size of a step of all members.
func (m *writerSimModel) sizeOf(shares map[int]*writerSimShare) uint64 {
	size := uint64(0)
	for _, share := range shares {
		for _, b := range share.sizes {
			size += b
		}
	}
	return size
}

// crammed reports whether a member has no room.
func crammed(shares map[int]*writerSimShare) bool {
	for _, share := range shares {
		if share.full {
			return true
		}
	}
	return false
}

// step returns the books of a published step, and opens them at its first sign.
func (m *writerSimModel) step(n int64) *writerSimStep {
	if n < int64(len(m.steps)) {
		return m.steps[n]
	}
	s := m.s
	try := int64(len(s.verdicts))
	if n != int64(len(m.steps)) || len(s.shares[try]) != len(s.members) {
		s.t.Fatalf("step %d is sent in try %d, which is not complete", n, try)
	}
	size := m.sizeOf(s.shares[try])
	if m.full(size) || crammed(s.shares[try]) {
		s.t.Fatalf("step %d of %d bytes is published into a full queue, or to a full member", n, size)
	}
	st := &writerSimStep{number: n, size: size, shares: s.shares[try]}
	for _, r := range s.readers {
		if m.all() && !r.gone && !r.observer {
			st.holders = append(st.holders, r)
		}
	}
	m.steps = append(m.steps, st)
	m.last = n
	return st
}

// registered keeps for a new reader what it will be sent.
func (m *writerSimModel) registered(r *writerSimReader) {
	if !m.all() || r.observer || m.s.drained || m.s.failed {
		return
	}
	for _, st := range m.steps {
		if !st.freed && !st.discarded && (len(st.holders) > 0 || len(st.lookers) == 0 || m.spare(st)) {
			st.holders = append(st.holders, r)
		}
	}
}

// spare reports whether an unneeded step is kept for readers to come: one of the
// newest, or the first. Only where observers blur the sight do we ask the machine.
func (m *writerSimModel) spare(st *writerSimStep) bool {
	i, ok := m.s.leader.queue.steps.find(st.number)
	return ok && m.s.leader.queue.steps.at(i).use == useSpare
}

// sent notes that a reader has a step.
func (m *writerSimModel) sent(r *writerSimReader, msg *sstmsg.TimestepMetadata) {
	s, st := m.s, m.step(msg.Step)
	switch {
	case st.discarded || st.freed:
		s.t.Fatalf("step %d to reader %d: discarded %v, freed %v", st.number, r.key, st.discarded, st.freed)
	case r.observer:
		if len(r.whole)-len(r.returned) > 1 {
			s.t.Fatalf("observer %d has %v, and returned %v", r.key, r.whole, r.returned)
		}
		st.lookers = append(st.lookers, r)
	case m.all():
		if !slices.Contains(st.holders, r) {
			s.t.Fatalf("step %d to reader %d was not kept for it", st.number, r.key)
		}
	default:
		if len(st.holders) > 0 || st.released {
			s.t.Fatalf("step %d is dealt to reader %d, but another one has it", st.number, r.key)
		}
		st.dealt++
		st.holders = append(st.holders, r)
	}
}

// keptFor lists the steps that are kept for a reader.
func (m *writerSimModel) keptFor(r *writerSimReader) []int64 {
	var list []int64
	for _, st := range m.steps {
		if slices.Contains(st.holders, r) || slices.Contains(st.lookers, r) {
			list = append(list, st.number)
		}
	}
	return list
}

// content checks that a step is what the members put into it, all of the same try.
func (m *writerSimModel) content(r *writerSimReader, msg *sstmsg.TimestepMetadata) {
	s, st := m.s, m.steps[msg.Step]
	m.checkPlaces(r, st, msg)
	for _, member := range s.members {
		share := st.shares[member.id]
		for i := range member.ranks {
			rank := member.base + i
			want := sstmsg.Block{Data: sstmsg.ByteBlob([]byte(writerSimRecord(rank, share.try)))}
			if got := string(msg.Metadata[rank].Data.Bytes()); got != string(want.Data.Bytes()) {
				s.t.Fatalf("step %d, rank %d: %q, want %q", msg.Step, rank, got, want.Data.Bytes())
			}
			if got := r.attributes[rank]; got != share.attributes[i] {
				s.t.Fatalf("step %d to reader %d: attributes %q of rank %d, want %q", msg.Step, r.key, got, rank, share.attributes[i])
			}
		}
		for _, id := range share.formats {
			if !r.known[id] {
				s.t.Fatalf("step %d came to reader %d without format %s", msg.Step, r.key, id)
			}
		}
	}
}

// checkPlaces: who can look is told where the data of each rank lie, if any lie
// where one can look, and nobody else is.
func (m *writerSimModel) checkPlaces(r *writerSimReader, st *writerSimStep, msg *sstmsg.TimestepMetadata) {
	s := m.s
	want, some := make([]string, len(msg.Metadata)), false
	for _, member := range s.members {
		for i, p := range st.shares[member.id].places {
			want[member.base+i] = p
			some = some || p != ""
		}
	}
	s.saw("places for a reader of plane "+r.plane, some)
	if r.plane == PlaneEvpath || !some {
		if msg.Native != nil {
			s.t.Fatalf("step %d to reader %d of plane %s has places %v", msg.Step, r.key, r.plane, msg.Native)
		}
		return
	}
	for rank := range want {
		if len(msg.Native) != len(want) || string(msg.Native[rank].Data.Bytes()) != want[rank] {
			s.t.Fatalf("step %d to reader %d of plane %s: places %v, want %q", msg.Step, r.key, r.plane, msg.Native, want)
		}
	}
}

// free notes that the members may let a step go, which nobody may need.
func (m *writerSimModel) free(n int64) {
	s := m.s
	if n >= int64(len(m.steps)) {
		s.t.Fatalf("step %d is freed before it is there", n)
	}
	st := m.steps[n]
	st.holders = slices.DeleteFunc(st.holders, func(r *writerSimReader) bool { return r.gone })
	st.lookers = slices.DeleteFunc(st.lookers, func(r *writerSimReader) bool { return r.gone })
	ending := s.leader.drained
	switch {
	case st.freed || st.discarded:
		s.t.Fatalf("step %d is freed: freed %v, discarded %v", n, st.freed, st.discarded)
	case len(st.holders) > 0:
		s.t.Fatalf("step %d is freed, but reader %d needs it", n, st.holders[0].key)
	case len(st.lookers) > 0 && !ending:
		s.t.Fatalf("step %d is freed, but observer %d looks at it", n, st.lookers[0].key)
	case m.undealt(st) && m.wantedBy(n) != nil:
		s.t.Fatalf("step %d is freed, but reader %d could take it", n, m.wantedBy(n).key)
	}
	m.lose(st)
	st.freed = true
}

// lose counts a step that a reader wanted and none can get any more.
func (m *writerSimModel) lose(st *writerSimStep) {
	if m.undealt(st) && st.wanted {
		m.lost++
	}
	st.lost = true
}

// returned notes that a reader has given a step back.
func (m *writerSimModel) returned(r *writerSimReader, n int64) {
	st := m.steps[n]
	if i := slices.Index(st.holders, r); i >= 0 {
		st.holders = slices.Delete(st.holders, i, i+1)
		st.released = true
	}
	if i := slices.Index(st.lookers, r); i >= 0 {
		st.lookers = slices.Delete(st.lookers, i, i+1)
	}
	if kept := m.keptFor(r); len(kept) > 0 {
		r.missed = max(r.missed, min(kept[0], r.owes)-1)
	}
	r.warned = r.warned && 2*m.counts(r) >= int64(m.s.cfg.LagNotice)
}

// dropped checks why a reader was dropped, and takes it out of the books.
func (m *writerSimModel) dropped(r *writerSimReader, lag int64, err error) {
	s := m.s
	if errors.Is(err, ErrEvicted) {
		if s.cfg.LagLimit == 0 || r.observer || lag <= int64(s.cfg.LagLimit) {
			s.t.Fatalf("reader %d was evicted with a lag of %d: %v", r.key, lag, err)
		}
		if r.weft != (r.code == sstmsg.CloseEvicted) {
			s.t.Fatalf("reader %d, Weft %v, was evicted with code %d", r.key, r.weft, r.code)
		}
	}
	for _, st := range m.steps {
		if i := slices.Index(st.holders, r); i >= 0 {
			st.holders = slices.Delete(st.holders, i, i+1)
			if !m.all() {
				st.wanted = true
			}
		}
		if i := slices.Index(st.lookers, r); i >= 0 {
			st.lookers = slices.Delete(st.lookers, i, i+1)
		}
	}
}

// counts returns the lag of a reader by its messages.
func (m *writerSimModel) counts(r *writerSimReader) int64 {
	if !r.active {
		return int64(len(m.keptFor(r)))
	}
	if len(r.whole) == len(r.returned) {
		return 0
	}
	return int64(len(m.steps)) - 1 - r.missed
}

// drained checks that nobody needs anything any more.
func (m *writerSimModel) drained() {
	for _, st := range m.steps {
		if !st.freed {
			m.s.t.Fatalf("drained with step %d in memory", st.number)
		}
	}
	for _, r := range m.s.readers {
		if !r.gone && !r.observer && !r.closed {
			m.s.t.Fatalf("drained without WriterClose to reader %d", r.key)
		}
	}
}

// check is called after each event at the leader.
func (m *writerSimModel) check() {
	s := m.s
	if got := s.leader.NextStep(); got != int64(len(m.steps)) {
		s.t.Fatalf("the leader's next step is %d, want %d", got, len(m.steps))
	}
	if s.failed || s.ended {
		return
	}
	held, bytes, ranks := 0, uint64(0), make([]uint64, s.leader.Ranks())
	counted, countedBytes := 0, uint64(0)
	for _, st := range m.steps {
		switch {
		case !m.undealt(st):
		case m.wantedBy(st.number) != nil:
			st.wanted = true
		case !m.spare(st):
			m.lose(st) // but an observer looks at it
		}
		if st.freed {
			continue
		}
		held++
		bytes += st.size
		for _, member := range s.members {
			for i, b := range st.shares[member.id].sizes {
				ranks[member.base+i] += b
			}
		}
		if len(st.holders) == 0 && len(st.lookers) > 0 {
			continue // it takes no room, or gives way
		}
		countedBytes += st.size
		if st.number > 0 || !s.cfg.FirstPrecious {
			counted++
		}
	}
	if s.leader.Held() != held || s.leader.HeldBytes() != bytes || !slices.Equal(s.leader.RankBytes(), ranks) && !s.drained {
		s.t.Fatalf("the leader counts %d steps, %d bytes, %v; the books say %d, %d, %v", s.leader.Held(), s.leader.HeldBytes(), s.leader.RankBytes(), held, bytes, ranks)
	}
	if limit := s.cfg.QueueLimit; limit > 0 && counted > limit {
		s.t.Fatalf("%d steps take room, the limit is %d", counted, limit)
	}
	if limit := s.cfg.QueueLimitBytes; limit > 0 && countedBytes > limit && counted > 1 {
		s.t.Fatalf("%d steps of %d bytes take room, the limit is %d bytes", counted, countedBytes, limit)
	}
	if want := m.lost + m.discard; s.leader.Dropped() != want {
		s.t.Fatalf("the leader counts %d dropped steps, want %d", s.leader.Dropped(), want)
	}
	m.checkDeal()
	m.checkTry()
	m.checkReaders()
	m.checkData()
}

// checkDeal: a step that is dealt out does not wait while a reader waits for one.
func (m *writerSimModel) checkDeal() {
	for _, st := range m.steps {
		for _, r := range m.s.readers {
			if !m.undealt(st) || !r.active || !m.wants(r, st.number) {
				continue
			}
			if m.s.cfg.Distribution == RoundRobin || r.requests > int64(len(r.whole)) {
				m.s.t.Fatalf("step %d is with nobody, but reader %d waits", st.number, r.key)
			}
		}
	}
}

// checkWarnings: each comes once for each time that it becomes true.
func (m *writerSimModel) checkWarnings(e []WriterAction) {
	cfg, bytes := &m.s.cfg, m.s.leader.HeldBytes()
	for _, a := range e {
		switch a := a.(type) {
		case Watermark:
			if m.warned || cfg.WarnBytes == 0 || a.Bytes <= cfg.WarnBytes {
				m.s.t.Fatalf("warned of %d bytes; warned before %v", a.Bytes, m.warned)
			}
			m.warned = true
		case Lagging:
			r := m.s.byKey(a.Reader)
			if r.warned || r.observer || cfg.LagNotice == 0 || a.Steps <= int64(cfg.LagNotice) {
				m.s.t.Fatalf("reader %d was reported with a lag of %d; reported before %v", r.key, a.Steps, r.warned)
			}
			r.warned = true
		}
	}
	if bytes > cfg.WarnBytes && cfg.WarnBytes > 0 && !m.warned && !m.s.failed {
		m.s.t.Fatalf("no warning of %d bytes", bytes)
	}
	m.warned = m.warned && bytes >= cfg.WarnBytes/2
}

// checkTry: a step for which there is room does not wait.
func (m *writerSimModel) checkTry() {
	s := m.s
	try := int64(len(s.verdicts))
	if len(s.shares[try]) == len(s.members) && s.public && (s.cfg.Discard || !m.full(m.sizeOf(s.shares[try])) && !crammed(s.shares[try])) {
		s.t.Fatalf("try %d is complete and has room, but has no verdict", try)
	}
	if waits := !s.started; s.public && waits != (s.leader.Active() < s.cfg.Rendezvous) && waits {
		s.t.Fatalf("%d readers are there, %d are waited for, but the members were not started", s.leader.Active(), s.cfg.Rendezvous)
	}
	if s.cfg.BlockInBegin && s.started && len(s.over) < len(s.members) && s.goTry != try && (s.cfg.Discard || !m.full(1)) {
		s.t.Fatalf("there is room, but try %d was not let go", try)
	}
	if !s.cfg.BlockInBegin || s.cfg.Discard || s.cfg.QueueLimit == 0 || s.goTry != try {
		return
	}
	counted := 1 // the open one
	for _, st := range m.steps {
		if !st.freed && (len(st.holders) > 0 || len(st.lookers) == 0) && (st.number > 0 || !s.cfg.FirstPrecious) {
			counted++
		}
	}
	if counted > s.cfg.QueueLimit {
		s.t.Fatalf("%d steps with the open one, the limit is %d", counted, s.cfg.QueueLimit)
	}
}

// checkReaders: counts agree.
func (m *writerSimModel) checkReaders() {
	active := 0
	for _, r := range m.s.readers {
		if r.gone {
			continue
		}
		if r.active && !r.observer {
			active++
		}
		got := m.s.leader.Reader(r.key)
		want := Counts{
			Active: r.active, Observer: r.observer, Plane: r.plane, Sent: int64(len(r.whole)), Released: int64(len(r.returned)),
			Dropped: int64(len(r.hollow)), Lag: m.counts(r),
		}
		for _, st := range m.steps {
			if !st.freed && (slices.Contains(st.holders, r) || slices.Contains(st.lookers, r)) {
				want.Held++
				want.HeldBytes += st.size
			}
		}
		if got != want && !m.s.drained {
			m.s.t.Fatalf("reader %d: the leader counts %+v, want %+v", r.key, got, want)
		}
		if limit := int64(m.s.cfg.LagLimit); limit > 0 && !r.observer && want.Lag > limit && len(m.steps) > m.chased {
			m.s.t.Fatalf("reader %d lags %d steps, the limit is %d", r.key, want.Lag, limit)
		}
	}
	m.chased = len(m.steps)
	if got := m.s.leader.Active(); got != active {
		m.s.t.Fatalf("the leader counts %d active readers, want %d", got, active)
	}
}

// checkData: whatever a reader may ask for, every member has, and of one try.
func (m *writerSimModel) checkData() {
	for _, st := range m.steps {
		if st.freed {
			continue
		}
		for _, member := range m.s.members {
			if !member.dead && member.data[st.number] != st.shares[member.id] {
				m.s.t.Fatalf("step %d: member %d has %+v, want %+v", st.number, member.id, member.data[st.number], st.shares[member.id])
			}
		}
	}
}

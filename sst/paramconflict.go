package sst

import "fmt"

// conflicts lists, for people, what parameters of a writer say in vain because of what
// others say. None of it is an error, since none does harm and ADIOS2 takes it, but
// whoever set it expects something that does not happen.
func (p *Params) conflicts() []string {
	var list []string
	say := func(in bool, format string, args ...any) {
		if in {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	block := p.QueueFullPolicy != policyDiscard
	everyone := p.distribution() == 0 // AllToAll: a reader's lag is steps in the queue
	limit, bytes := p.QueueLimit, p.QueueLimitBytes
	say(block && everyone && limit > 0 && p.LagLimit >= limit,
		"LagLimit=%d detaches nobody: with QueueFullPolicy=Block and QueueLimit=%d no reader can be more than %[2]d steps behind; LagLimit has to be less", p.LagLimit, limit)
	say(block && everyone && limit > 0 && p.LagNotice >= limit,
		"LagNotice=%d tells of nobody: with QueueFullPolicy=Block and QueueLimit=%d no reader can be more than %[2]d steps behind; LagNotice has to be less", p.LagNotice, limit)
	say(p.LagLimit > 0 && p.LagNotice >= p.LagLimit,
		"LagNotice=%d tells of nobody: a reader is detached before, with LagLimit=%d", p.LagNotice, p.LagLimit)
	say(limit > 0 && p.ReserveQueueLimit > limit,
		"ReserveQueueLimit=%d keeps no more than %d steps: that is QueueLimit, for which kept ones count", p.ReserveQueueLimit, limit)
	say(!block && limit == 0 && bytes == 0,
		"QueueFullPolicy=Discard drops nothing: with QueueLimit=0 and QueueLimitBytes=0 the queue is never full")
	say(!block && p.BlockAt == atBeginStep,
		"BlockAt=BeginStep blocks nobody: with QueueFullPolicy=Discard a full queue drops steps")
	say(p.QueueWarnBytes != nil && bytes > 0 && *p.QueueWarnBytes >= bytes,
		"QueueWarnBytes=%s warns of nothing: QueueLimitBytes=%s is reached before", formatBytes(deref(p.QueueWarnBytes)), formatBytes(bytes))
	return list
}

func deref(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

// sayConflicts warns of them, on the rank that speaks for all.
func (w *Writer) sayConflicts() {
	if w.ranks.rank != 0 {
		return
	}
	for _, text := range w.cfg.Params.conflicts() {
		w.session.log.Warn(text, "stream", w.path)
	}
}

package cohort

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The channels of a cohort against a model that says in a few lines what each end
// must be told: histories of joins, messages, leaving and deaths in any order.
// Local delivers at once, so that the model need not guess what crossed what.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, rapid.IntRange(1, 4).Draw(t, "ranks"))
		t.Repeat(map[string]func(*rapid.T){
			"join":  h.join,
			"send":  h.send,
			"leave": h.leave,
			"close": h.close,
		})
		h.finish(t)
	})
}

// history is a cohort and what the model knows of it.
type history struct {
	ranks  []Cohort
	closed map[int]bool
	order  []int // in which ranks were closed
	joins  []map[string]int
	places map[key]*site
	ends   []*modelEnd
	sent   int
}

// site is a channel, as nobody in it sees it: what everybody does there.
type site struct {
	ends map[int]*modelEnd
	left map[int]bool
	// pending is what the end of a rank must be told, from the beginning, whether
	// it has joined yet or not.
	pending map[int][]string
}

// modelEnd is one rank's end.
type modelEnd struct {
	rank   int
	key    key
	ch     Channel
	told   *tape
	closed bool
	must   []string // at its end
}

// tape is a Handler that writes down what it is told.
type tape struct {
	mu   sync.Mutex
	list []string
}

func (p *tape) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, text)
}

func (p *tape) Message(from int, msg []byte) { p.add(fmt.Sprintf("%d: %s", from, msg)) }
func (p *tape) Lost(rank int, _ error)       { p.add(fmt.Sprintf("lost %d", rank)) }

func (p *tape) copy() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

func newHistory(_ *rapid.T, n int) *history {
	h := &history{ranks: Local(n), closed: make(map[int]bool), places: make(map[key]*site)}
	for range n {
		h.joins = append(h.joins, make(map[string]int))
	}
	return h
}

// site returns the channel of a key; a new one knows of the ranks that were closed
// before: everybody is told of them, in this order, rank 0 last.
func (h *history) site(k key) *site {
	s := h.places[k]
	if s != nil {
		return s
	}
	s = &site{ends: make(map[int]*modelEnd), left: make(map[int]bool), pending: make(map[int][]string)}
	h.places[k] = s
	for _, dead := range h.order {
		h.tellLoss(s, dead)
	}
	return s
}

// tellLoss is the rule of losses: who had not left is lost to everybody that still
// hears of others. After rank 0 is closed, nobody does.
func (h *history) tellLoss(s *site, dead int) {
	before := h.order[:slices.Index(h.order, dead)]
	if s.left[dead] {
		return
	}
	for rank := range h.ranks {
		if rank != dead && (rank == 0 || !slices.Contains(before, 0)) {
			s.pending[rank] = append(s.pending[rank], fmt.Sprintf("lost %d", dead))
		}
	}
}

// tellAllLost is what a rank hears that closes its own cohort.
func (h *history) tellAllLost(s *site, rank int) {
	for other := range h.ranks {
		if other != rank && (rank == 0 || other == 0) && !s.left[other] && !h.closed[other] {
			s.pending[rank] = append(s.pending[rank], fmt.Sprintf("lost %d", other))
		}
	}
}

func (h *history) anyRank(t *rapid.T) int {
	return rapid.IntRange(0, len(h.ranks)-1).Draw(t, "rank")
}

func (h *history) join(t *rapid.T) {
	rank, name := h.anyRank(t), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	told := &tape{}
	ch, err := h.ranks[rank].Join(name, told)
	if h.closed[rank] {
		if err == nil {
			t.Fatalf("rank %d joined after Close", rank)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	h.joins[rank][name]++
	e := &modelEnd{rank: rank, key: key{name, uint32(h.joins[rank][name])}, ch: ch, told: told}
	h.site(e.key).ends[rank] = e
	h.ends = append(h.ends, e)
}

func (h *history) anyEnd(t *rapid.T) *modelEnd {
	if len(h.ends) == 0 {
		t.Skip("no ends yet")
	}
	return rapid.SampledFrom(h.ends).Draw(t, "end")
}

func (h *history) send(t *rapid.T) {
	e, to := h.anyEnd(t), rapid.IntRange(-1, len(h.ranks)).Draw(t, "to")
	h.sent++
	text := fmt.Sprint("message ", h.sent)
	err := e.ch.Send(to, []byte(text))
	dead := h.closed[to] && (e.rank == 0 || to == 0)
	allowed := to >= 0 && to < len(h.ranks) && to != e.rank && (to == 0 || e.rank == 0)
	if good := !e.closed && allowed && !dead; good != (err == nil) {
		t.Fatalf("rank %d to %d: %v, should it work: %v", e.rank, to, err, good)
	}
	if err == nil {
		s := h.site(e.key)
		s.pending[to] = append(s.pending[to], fmt.Sprintf("%d: %s", e.rank, text))
	}
}

func (h *history) leave(t *rapid.T) {
	e := h.anyEnd(t)
	h.settle(t, e)
	if err := e.ch.Close(); err != nil {
		t.Fatal(err)
	}
	if !e.closed {
		h.site(e.key).left[e.rank] = true
	}
	h.stop(e)
}

// stop notes what an end has been told when it is closed.
func (h *history) stop(e *modelEnd) {
	if !e.closed {
		e.closed = true
		e.must = slices.Clone(h.site(e.key).pending[e.rank])
	}
}

func (h *history) close(t *rapid.T) {
	rank := h.anyRank(t)
	for _, e := range h.ends {
		if e.rank == rank {
			h.settle(t, e)
		}
	}
	if err := h.ranks[rank].Close(); err != nil {
		t.Fatal(err)
	}
	if h.closed[rank] {
		return
	}
	for _, e := range h.ends {
		if e.rank == rank && !e.closed {
			h.tellAllLost(h.site(e.key), rank)
			h.stop(e)
		}
	}
	h.closed[rank] = true
	h.order = append(h.order, rank)
	for _, s := range h.places {
		h.tellLoss(s, rank)
	}
}

// settle waits until an open end has been told all, and compares. The order of
// two senders is not free: one lock orders them all.
func (h *history) settle(t *rapid.T, e *modelEnd) {
	must := e.must
	if !e.closed {
		must = h.site(e.key).pending[e.rank]
	}
	var got []string
	for range 10_000 {
		if got = e.told.copy(); len(got) >= len(must) {
			break
		}
		<-pauseBriefly()
	}
	// Losses that came before anybody used the channel come in order of rank.
	if !slices.Equal(normal(got), normal(must)) {
		t.Fatalf("rank %d in %v was told\n %s\nand should be\n %s", e.rank, e.key, strings.Join(got, "\n "), strings.Join(must, "\n "))
	}
	for i, text := range got {
		if e.rank != 0 && text == "lost 0" && i != len(got)-1 {
			t.Fatalf("rank %d was told %q after the loss of rank 0", e.rank, got[i+1:])
		}
	}
}

// normal sorts runs of losses, whose order among each other is free.
func normal(list []string) []string {
	list = slices.Clone(list)
	for i := 0; i < len(list); i++ {
		j := i
		for j < len(list) && strings.HasPrefix(list[j], "lost ") {
			j++
		}
		slices.Sort(list[i:j])
		i = max(i, j-1)
	}
	return list
}

func (h *history) finish(t *rapid.T) {
	for _, e := range h.ends {
		h.settle(t, e)
	}
	for rank, c := range h.ranks {
		c.Close()
		l := c.(*local)
		if len(l.channels)+len(l.records)+len(l.joins) != 0 {
			t.Errorf("rank %d keeps %v, %v and %v", rank, slices.Collect(maps.Keys(l.channels)), l.records, l.joins)
		}
	}
}

package provutil

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"pgregory.net/rapid"
)

// modelMessage and modelRecv are what the model of the matcher keeps, in slices.
type modelMessage struct {
	tagged bool
	source provider.Peer
	tag    uint64
	id     int
	claim  int // context + 1
}

type modelRecv struct {
	tagged      bool
	peer        provider.Peer
	tag, ignore uint64
	context     uint64
	multi       int // messages it takes
}

func (r *modelRecv) takes(m modelMessage) bool {
	return m.claim == 0 && r.tagged == m.tagged && (r.peer == 0 || r.peer == m.source) && (!r.tagged || r.tag&^r.ignore == m.tag&^r.ignore)
}

// TestMatcherModel posts, sends, peeks, claims, cancels, and compares who met whom with slices.
func TestMatcherModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Matcher[int]
		var posted []*modelRecv
		var waiting []modelMessage
		var met, want [][2]uint64 // context, message
		left := map[*Recv]int{}
		ids, contexts := 0, uint64(0)
		tags := rapid.Uint64Range(0, 3)
		peers := rapid.Uint64Range(1, 3)

		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				msg := modelMessage{tagged: rapid.Bool().Draw(t, "tagged"), source: provider.Peer(peers.Draw(t, "peer")), tag: tags.Draw(t, "tag"), id: ids}
				ids++
				i := slices.IndexFunc(posted, func(r *modelRecv) bool { return r.takes(msg) })
				if i < 0 {
					waiting = append(waiting, msg)
				} else {
					want = append(want, [2]uint64{posted[i].context, uint64(msg.id)})
					if posted[i].multi--; posted[i].multi == 0 {
						posted = slices.Delete(posted, i, i+1)
					}
				}
				r := m.Match(msg.tagged, msg.source, msg.tag)
				if r == nil {
					k := m.Keep(msg.tagged)
					k.Source, k.Tag, k.Extra = msg.source, msg.tag, msg.id
					return
				}
				met = append(met, [2]uint64{r.Context, uint64(msg.id)})
				if left[r]--; left[r] == 0 {
					m.Remove(r)
					m.FreeRecv(r)
				}
			},
			"post": func(t *rapid.T) {
				x := &modelRecv{tagged: rapid.Bool().Draw(t, "tagged"), tag: tags.Draw(t, "tag"), ignore: tags.Draw(t, "ignore"), context: contexts, multi: 1}
				contexts++
				if rapid.Bool().Draw(t, "directed") {
					x.peer = provider.Peer(peers.Draw(t, "peer"))
				}
				if !x.tagged {
					x.multi = rapid.IntRange(1, 3).Draw(t, "multi")
				}
				r := m.NewRecv()
				r.Tagged, r.Peer, r.Tag, r.Ignore, r.Context = x.tagged, x.peer, x.tag, x.ignore, x.context
				left[r] = x.multi
				for x.multi > 0 {
					i := slices.IndexFunc(waiting, x.takes)
					if i < 0 {
						posted = append(posted, x)
						break
					}
					want = append(want, [2]uint64{x.context, uint64(waiting[i].id)})
					waiting = slices.Delete(waiting, i, i+1)
					x.multi--
				}
				for msg := m.Find(r); msg != nil; msg = m.Find(r) {
					m.Take(msg)
					met = append(met, [2]uint64{r.Context, uint64(msg.Extra)})
					m.FreeMessage(msg)
					if left[r]--; left[r] == 0 {
						m.FreeRecv(r)
						return
					}
				}
				m.Add(r)
			},
			"cancel": func(t *rapid.T) {
				context := rapid.Uint64Range(0, contexts).Draw(t, "context")
				i := slices.IndexFunc(posted, func(r *modelRecv) bool { return r.context == context })
				r := m.Posted(context)
				if (r != nil) != (i >= 0) {
					t.Fatalf("posted %d: %v", context, r)
				}
				if r != nil {
					m.Remove(r)
					m.FreeRecv(r)
					posted = slices.Delete(posted, i, i+1)
				}
			},
			"claim": func(t *rapid.T) {
				x := modelRecv{tagged: true, tag: tags.Draw(t, "tag")}
				i := slices.IndexFunc(waiting, x.takes)
				msg := m.Find(&Recv{Tagged: true, Tag: x.tag})
				if (msg != nil) != (i >= 0) {
					t.Fatalf("peek: %v, %d", msg, i)
				}
				if msg == nil {
					return
				}
				context := rapid.Uint64Range(0, 3).Draw(t, "context")
				m.Claim(msg, context)
				w := waiting[i]
				w.claim = int(context) + 1
				waiting = append(slices.Delete(waiting, i, i+1), w)
			},
			"take claimed": func(t *rapid.T) {
				context := rapid.Uint64Range(0, 3).Draw(t, "context")
				i := slices.IndexFunc(waiting, func(w modelMessage) bool { return w.claim == int(context)+1 })
				msg := m.Claimed(context)
				if (msg != nil) != (i >= 0) || msg != nil && msg.Extra != waiting[i].id {
					t.Fatalf("claimed: %v, %d", msg, i)
				}
				if msg != nil {
					m.Take(msg)
					m.FreeMessage(msg)
					waiting = slices.Delete(waiting, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if !slices.Equal(met, want) {
					t.Fatalf("met %v, want %v", met, want)
				}
				if p, w := m.Len(); p != len(posted) || w != len(waiting) {
					t.Fatalf("%d posted, %d waiting, want %d and %d", p, w, len(posted), len(waiting))
				}
			},
		})
	})
}

func TestMatcherEach(t *testing.T) {
	var m Matcher[int]
	for i := range uint64(4) {
		r := m.NewRecv()
		r.Context, r.Tagged = i, i%2 == 0
		m.Add(r)
		msg := m.Keep(i%2 == 0)
		msg.Tag = i
	}
	m.Claim(m.Find(&Recv{Tagged: true, Tag: 2}), 0)
	n := 0
	m.EachRecv(func(r *Recv) {
		m.Remove(r)
		m.Remove(r)
		m.FreeRecv(r)
		n++
	})
	m.EachMessage(func(msg *Message[int]) {
		m.Take(msg)
		m.FreeMessage(msg)
		n++
	})
	if p, w := m.Len(); n != 8 || p+w != 0 {
		t.Errorf("%d; %d, %d are left", n, p, w)
	}
	if n := testing.AllocsPerRun(100, func() {
		r := m.NewRecv()
		m.Add(r)
		m.Remove(m.Match(false, 1, 0))
		m.FreeRecv(r)
		m.Keep(false)
		msg := m.Find(&Recv{})
		m.Take(msg)
		m.FreeMessage(msg)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	for name, n := range map[string]int{"1 posted": 1, "100 posted": 100} {
		b.Run(name, func(b *testing.B) {
			var m Matcher[int]
			for i := range n {
				r := m.NewRecv()
				r.Tagged, r.Tag = true, uint64(i)
				m.Add(r)
			}
			for b.Loop() {
				m.Match(true, 1, uint64(n-1))
			}
		})
	}
}

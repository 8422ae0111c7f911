package step

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
)

// catalog is what records say of all variables of a step, but for values. Most programs put
// the same blocks of the same arrays at the same places in each step, so steps whose records are
// alike share one, with the layouts that were made of it. It is immutable but for those.
type catalog struct {
	entries []entry // sorted by name
	order   *order
}

// entry is a variable in a catalog.
type entry struct {
	def  *varDef
	recs []varRec // the ranks that put it, in order

	// Layouts are made when they are needed: most readers want few of thousands.
	once sync.Once // guards lay; err may be set before
	lay  *layout
	err  error
}

// order is which variables there are in a step, sorted by name. It is shared by steps that have
// the same ones, and immutable.
type order struct {
	met    []int32          // name ids, as they were met in the records
	sorted []int32          // by name
	places map[string]int32 // by name: where it is in sorted; nil in the first step that has these
}

// find returns the index of a variable, -1 if there is none of that name.
func (c *catalog) find(name string) int {
	if c.order.places != nil {
		if i, ok := c.order.places[name]; ok {
			return int(i)
		}
		return -1
	}
	i, ok := sort.Find(len(c.entries), func(i int) int { return strings.Compare(name, c.entries[i].def.name) })
	if !ok {
		return -1
	}
	return i
}

// again returns the order with places: what comes twice comes more often, and then to make the map
// is worth it. Steps that have the order already keep it as it is.
func (o *order) again(names *names) *order {
	if o.places != nil {
		return o
	}
	places := make(map[string]int32, len(o.sorted))
	for i, id := range o.sorted {
		places[names.list[id]] = int32(i)
	}
	return &order{o.met, o.sorted, places}
}

// repeated returns the catalog of the last step, for one more whose records are like those.
func (d *Decoder) repeated() *catalog {
	if d.last.order.places == nil {
		d.last = &catalog{d.last.entries, d.last.order.again(&d.names)}
	}
	return d.last
}

// ordered returns the order of the variables that were met.
func (d *Decoder) ordered() *order {
	if o := d.last.order; slices.Equal(o.met, d.met) {
		return o.again(&d.names)
	}
	o := &order{met: slices.Clone(d.met), sorted: slices.Clone(d.met)}
	d.names.sort(o.sorted)
	return o
}

// catalog makes the catalog of the records of all ranks: first it counts, so that the memory for
// all variables comes in few pieces, then it fills in.
func (d *Decoder) catalog(s *Step, formats []*format) *catalog {
	d.slots = append(d.slots, make([]slot, len(d.names.list)-len(d.slots))...)
	total := 0
	for rank, m := range s.metas {
		if m == nil {
			continue
		}
		defs := formats[rank].defs
		for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
			sl := &d.slots[defs[i].id]
			if sl.n == 0 {
				sl.def = &defs[i]
				d.met = append(d.met, defs[i].id)
			}
			sl.n++
			total++
		}
	}
	c := d.newCatalog(make([]varRec, total))
	for rank, m := range s.metas {
		if m == nil {
			continue
		}
		defs := formats[rank].defs
		for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
			d.slots[defs[i].id].e.addRank(varRec{rank: int32(rank), field: int32(i)}, &defs[i])
		}
	}
	for _, id := range d.met {
		d.slots[id] = slot{}
	}
	d.met = d.met[:0]
	return c
}

// newCatalog makes the entries of the variables that were met; recs is memory for their records.
func (d *Decoder) newCatalog(recs []varRec) *catalog {
	c := &catalog{make([]entry, len(d.met)), d.ordered()}
	for i, id := range c.order.sorted {
		sl, e := &d.slots[id], &c.entries[i]
		e.def = sl.def
		e.recs, recs = recs[:0:sl.n], recs[sl.n:]
		sl.e = e
		if e.def.typ == Struct && e.def.structType.Load() == nil {
			e.def.structType.Store(d.structType(e.def.structID))
		}
	}
	return c
}

// addRank adds the record of one rank, whose definition must be that of the
// first.
func (e *entry) addRank(rec varRec, def *varDef) {
	if n := len(e.recs); n > 0 && e.recs[n-1].rank == rec.rank {
		e.err = fmt.Errorf("%w: rank %d has two variables of this name", ErrMetadata, rec.rank)
		return
	}
	if def != e.def && !def.same(e.def) {
		e.err = fmt.Errorf("%w: rank %d has a %v of %v, rank %d a %v of %v", ErrMetadata, rec.rank, def.kind, def.typ, e.recs[0].rank, e.def.kind, e.def.typ)
		return
	}
	e.recs = append(e.recs, rec)
}

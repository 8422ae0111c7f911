package sstmsg

import (
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// plan says how records of one wire format become messages: which wire field each
// Go field is. It is made once for a format, whoever sent that.
type plan struct {
	t    reflect.Type // of the message
	top  *reader
	step *stepPlan // nil but of a TimestepMetadata
}

// reader is the plan of one struct.
type reader struct {
	layout *layout
	wire   []int     // wire field of each binding, -1 if there is none
	subs   []*reader // of each binding that leads to structs
	link   int       // wire field that chains a list, -1 if there is none
}

// planOf returns the plan of a format, from the format itself if it is there.
func planOf(f *ffs.Format) (*plan, error) {
	made, err := f.Derived(func() (any, error) { return newPlan(f) })
	if err != nil {
		return nil, err
	}
	return made.(*plan), nil
}

// newPlan makes a plan. The error is that of a format that is none of SST's.
func newPlan(f *ffs.Format) (*plan, error) {
	m := newMessage(f.Name())
	if m == nil {
		return nil, ErrUnknown
	}
	c, err := compile(m, variant{release: ReleaseMain, plane: wirePlane(f), weft: true})
	if err != nil {
		return nil, err
	}
	p := planner{structs: f.Structs(), types: f.Types, made: map[match]*reader{}}
	made := &plan{t: reflect.TypeOf(m).Elem(), top: p.reader(c.top, 0)}
	made.step = stepPlanOf(made)
	return made, nil
}

// planner makes the readers of one format. Lists are recursive, so each is made
// once.
type planner struct {
	structs []ffs.Struct
	types   func(int) []ffs.Type
	made    map[match]*reader
}

// match is one of our structs and the wire struct that it is read from.
type match struct {
	layout *layout
	wire   int
}

func (p *planner) reader(l *layout, wire int) *reader {
	key := match{l, wire}
	if r := p.made[key]; r != nil {
		return r
	}
	r := &reader{layout: l, wire: make([]int, len(l.bindings)), subs: make([]*reader, len(l.bindings)), link: -1}
	p.made[key] = r
	for i := range l.bindings {
		b := &l.bindings[i]
		r.wire[i] = p.find(wire, b.name)
		switch {
		case r.wire[i] < 0:
		case b.role == roleLink:
			r.link = r.wire[i]
		case b.sub != nil:
			// A field that leads to no struct has no reader; reading it is an error.
			if sub := p.structOf(p.types(wire)[r.wire[i]].Struct); sub >= 0 {
				r.subs[i] = p.reader(b.sub, sub)
			}
		}
	}
	return r
}

// find returns the first field of a wire struct of that name, -1 if there is none.
func (p *planner) find(wire int, name string) int {
	for i := range p.structs[wire].Fields {
		if p.structs[wire].Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// structOf returns the first wire struct of that name, -1 if there is none.
func (p *planner) structOf(name string) int {
	for i := range p.structs {
		if p.structs[i].Name == name {
			return i
		}
	}
	return -1
}

package step

import (
	"cmp"
	"slices"
)

// attrSet is the attributes known at some step. It is a value that never
// changes: with makes a new one. A stream may change one attribute of many in
// each step, so the set is a list of layers, newer ones over older ones, each
// layer more than twice as large as the one above it. A change costs the
// logarithm of the number of attributes on average, not that number.
type attrSet struct{ layers []map[string]*Attribute } // newest last

// with returns the set with attributes added or replaced.
func (s attrSet) with(list []*Attribute) attrSet {
	if len(list) == 0 {
		return s
	}
	top := make(map[string]*Attribute, len(list))
	for _, a := range list {
		top[a.Name()] = a
	}
	layers := slices.Clone(s.layers)
	for n := len(layers); n > 0 && len(layers[n-1]) <= 2*len(top); n-- {
		for name, a := range layers[n-1] {
			if _, newer := top[name]; !newer {
				top[name] = a
			}
		}
		layers = layers[:n-1]
	}
	return attrSet{append(layers, top)}
}

// find returns the attribute of that name.
func (s attrSet) find(name string) (*Attribute, bool) {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if a, ok := s.layers[i][name]; ok {
			return a, true
		}
	}
	return nil, false
}

// sorted returns all attributes by name.
func (s attrSet) sorted() []*Attribute {
	var list []*Attribute
	for i, layer := range s.layers {
		for name, a := range layer {
			if _, hidden := (attrSet{s.layers[i+1:]}).find(name); !hidden {
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Attribute) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

package step

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// define makes the definitions of the variables of a format.
func (d *Decoder) define(vars []bp5.VarDesc) []varDef {
	defs := make([]varDef, len(vars))
	for i := range vars {
		v, def := &vars[i], &defs[i]
		def.name, def.typ, def.elemSize, def.kind = v.Name, Type(v.Type), v.ElemSize, kindOf(v.Kind)
		def.operator, def.expression, def.structID = v.Operator, v.Expression, v.StructID
		def.id = d.names.id(v.Name)
		def.err = def.check()
	}
	return defs
}

// kindOf returns UnknownKind for letters that BP5 does not have.
func kindOf(k bp5.Kind) Kind {
	switch k {
	case bp5.GlobalValue:
		return GlobalValueKind
	case bp5.LocalValue:
		return LocalValueKind
	case bp5.GlobalArray:
		return GlobalArrayKind
	case bp5.LocalArray:
		return LocalArrayKind
	case bp5.JoinedArray:
		return JoinedArrayKind
	}
	return UnknownKind
}

// check reports why variables of this definition cannot be read.
func (def *varDef) check() error {
	switch {
	case !def.typ.Valid():
		return fmt.Errorf("elements of %v: %w", def.typ, ErrUnreadable)
	case def.typ == String && !def.kind.IsValue():
		return fmt.Errorf("array of strings: %w", ErrUnreadable)
	case def.typ == Struct && def.elemSize <= 0, def.typ != Struct && def.elemSize != def.typ.Size():
		return fmt.Errorf("elements of %v with %d bytes: %w", def.typ, def.elemSize, ErrUnreadable)
	}
	return nil
}

// same reports whether blocks of both definitions can be parts of one array.
func (def *varDef) same(o *varDef) bool {
	return def.kind == o.kind && def.typ == o.typ && def.elemSize == o.elemSize && def.structID == o.structID
}

// names gives the names of variables small numbers, and knows their order. It
// grows with the variables that were ever put.
type names struct {
	ids  map[string]int32
	list []string
	pos  []int32 // by id: the place of the name among those there were at the last sorting
}

// id returns the number of a name, the same each time.
func (n *names) id(name string) int32 {
	id, ok := n.ids[name]
	if !ok {
		id = int32(len(n.list))
		n.ids[name] = id
		n.list = append(n.list, name)
	}
	return id
}

// sort brings ids into the order of their names. All names are sorted only when
// their number has grown by half: a stream may have a new one in each step.
func (n *names) sort(ids []int32) {
	if len(n.list) > len(n.pos)+len(n.pos)/2 {
		n.place()
	}
	slices.SortFunc(ids, func(a, b int32) int {
		if int(a) < len(n.pos) && int(b) < len(n.pos) {
			return cmp.Compare(n.pos[a], n.pos[b])
		}
		return strings.Compare(n.list[a], n.list[b])
	})
}

// place sorts all names.
func (n *names) place() {
	byName := make([]int32, len(n.list))
	for i := range byName {
		byName[i] = int32(i)
	}
	slices.SortFunc(byName, func(a, b int32) int { return strings.Compare(n.list[a], n.list[b]) })
	n.pos = make([]int32, len(n.list))
	for place, id := range byName {
		n.pos[id] = int32(place)
	}
}

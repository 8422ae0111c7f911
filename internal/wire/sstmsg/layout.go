package sstmsg

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// A field's part in a message, as its tag says.
type role uint8

const (
	roleInt       role = iota // Go integer <-> integer of any size
	roleText                  // string <-> string, "" is NULL
	roleBlob                  // Blob <-> T[count]
	roleStruct                // struct <-> struct in place
	rolePointer               // *struct <-> *T
	rolePointers              // []struct <-> (*T)[count]
	roleElements              // []struct <-> T[count]
	roleList                  // []struct <-> *T, chained through a link field
	roleCount                 // computed from the array it counts, ignored when read
	roleLink                  // the link of roleList
	rolePadding               // bytes that nobody uses
	slotSize      = 8         // an offset to the variable part
	pointerAlign  = 8
	structPadding = "pad"
)

// binding ties one Go field to one wire field.
type binding struct {
	role   role
	name   string
	goIdx  int // index of the Go field
	wire   int // index of the wire field when encoding
	counts int // roleCount: Go index of the array
	sub    *layout
}

// layout is one struct of one message variant: its wire description and how
// the Go fields map to it.
type layout struct {
	wire     ffs.Struct
	bindings []binding
}

// variant selects what a message looks like on the wire.
type variant struct {
	release Release
	plane   string // "evpath" or "rdma": which data-plane structs are in it
	weft    bool   // with Weft's own extra fields
}

// compiler builds the layouts of one message and collects its sub-structs.
type compiler struct {
	variant
	subs  map[string]*layout
	order []string
}

// compiled is one message variant, ready for use.
type compiled struct {
	top    *layout
	format *ffs.Format
	flat   *flatLayout // nil if the message is not that simple
	step   *stepLayout // nil but of a TimestepMetadata
}

// known are the variants of one message that have been compiled, by
// variant.index. An index instead of a map of variants: looking up one happens for
// each message, and must not allocate.
type known [3 * 2 * 2]atomic.Pointer[compiled]

// index numbers the variants; ok is false for releases that there are not.
func (v variant) index() (i int, ok bool) {
	i = int(v.release) * 4
	if v.plane == "rdma" {
		i += 2
	}
	if v.weft {
		i++
	}
	return i, i < len(known{})
}

// variants caches what compile made; it only ever gains immutable entries.
var variants sync.Map // reflect.Type -> *known

func compile(m Message, v variant) (*compiled, error) {
	t := reflect.TypeOf(m).Elem()
	i, ok := v.index()
	if !ok {
		return compileNew(m, t, v)
	}
	cached, ok := variants.Load(t)
	if !ok {
		cached, _ = variants.LoadOrStore(t, new(known))
	}
	at := &cached.(*known)[i]
	if c := at.Load(); c != nil {
		return c, nil
	}
	c, err := compileNew(m, t, v)
	if err != nil {
		return nil, err
	}
	at.CompareAndSwap(nil, c)
	return at.Load(), nil
}

// compileNew makes the layouts and the format of m's type t.
func compileNew(m Message, t reflect.Type, v variant) (*compiled, error) {
	c := &compiler{variant: v, subs: map[string]*layout{}}
	top, err := c.layout(m.message(), t)
	if err != nil {
		return nil, err
	}
	subs := make([]ffs.Struct, 0, len(c.order))
	for _, name := range c.order {
		subs = append(subs, c.subs[name].wire)
	}
	f, err := ffs.Ordered(top.wire, subs...)
	if err != nil {
		return nil, fmt.Errorf("sstmsg: format of %s: %w", m.message(), err)
	}
	return &compiled{top: top, format: f, flat: flatten(top, f), step: stepLayoutOf(t, v, top, f)}, nil
}

// layout places the fields of t as a C compiler does on x86-64.
func (c *compiler) layout(name string, t reflect.Type) (*layout, error) {
	if l, ok := c.subs[name]; ok {
		return l, nil
	}
	l := &layout{wire: ffs.Struct{Name: name}}
	isSub := c.order != nil || len(c.subs) > 0 || name != messageName(t)
	if isSub {
		c.subs[name] = l
		c.order = append(c.order, name)
	}
	off, align := 0, 1
	for i := range t.NumField() {
		sf := t.Field(i)
		if !c.wants(sf.Tag) {
			continue
		}
		if pad := sf.Tag.Get(structPadding); pad != "" {
			n, err := strconv.Atoi(pad)
			if err != nil {
				return nil, fmt.Errorf("sstmsg: %s.%s: %w", name, sf.Name, err)
			}
			off += n
			continue
		}
		b, f, size, fieldAlign, err := c.field(t, i)
		if err != nil {
			return nil, err
		}
		off = roundUp(off, fieldAlign)
		align = max(align, fieldAlign)
		f.Offset = off
		b.wire = len(l.wire.Fields)
		l.wire.Fields = append(l.wire.Fields, f)
		l.bindings = append(l.bindings, b)
		off += size
	}
	l.wire.RecordLen, l.wire.Align = roundUp(off, align), align
	if err := c.fixLinks(l); err != nil {
		return nil, err
	}
	return l, nil
}

// messageName returns the wire name if t is a message.
func messageName(t reflect.Type) string {
	if m, ok := reflect.New(t).Interface().(Message); ok {
		return m.message()
	}
	return ""
}

// wants reports whether the variant has the field.
func (c *compiler) wants(tag reflect.StructTag) bool {
	if p := tag.Get("plane"); p != "" && p != c.plane {
		return false
	}
	if tag.Get("only") == "weft" && !c.weft {
		return false
	}
	switch tag.Get("since") {
	case "2.12":
		return c.release >= Release212
	case "main":
		return c.release >= ReleaseMain
	}
	return true
}

// field returns the binding of t's field i, its wire description, and the
// bytes and alignment it takes in the struct.
func (c *compiler) field(t reflect.Type, i int) (b binding, f ffs.Field, size, align int, err error) {
	sf := t.Field(i)
	parts := strings.Split(sf.Tag.Get("ffs"), ",")
	if len(parts) != 3 {
		return b, f, 0, 0, fmt.Errorf("sstmsg: %s.%s has no wire description", t.Name(), sf.Name)
	}
	f.Name, f.Type = parts[0], parts[1]
	f.Size, err = strconv.Atoi(parts[2])
	if err != nil {
		return b, f, 0, 0, fmt.Errorf("sstmsg: %s.%s: %w", t.Name(), sf.Name, err)
	}
	if old := sf.Tag.Get("old"); old != "" && c.release == Release210 {
		f.Size, err = strconv.Atoi(old)
		if err != nil {
			return b, f, 0, 0, fmt.Errorf("sstmsg: %s.%s: %w", t.Name(), sf.Name, err)
		}
	}
	b = binding{name: f.Name, goIdx: i}
	switch {
	case sf.Tag.Get("link") != "":
		b.role = roleLink // its size is set by fixLinks
		return b, f, slotSize, pointerAlign, nil
	case sf.Tag.Get("counts") != "":
		b.role = roleCount
		counted, _ := t.FieldByName(sf.Tag.Get("counts"))
		b.counts = counted.Index[0]
		return b, f, f.Size, f.Size, nil
	}
	return c.typedField(sf, b, f)
}

func (c *compiler) typedField(sf reflect.StructField, b binding, f ffs.Field) (binding, ffs.Field, int, int, error) {
	elem := sf.Type
	switch {
	case sf.Type == reflect.TypeFor[Blob]():
		b.role = roleBlob
		return b, f, slotSize, pointerAlign, nil
	case sf.Type.Kind() == reflect.String:
		b.role = roleText
		return b, f, slotSize, pointerAlign, nil
	case sf.Type.Kind() == reflect.Int32 || sf.Type.Kind() == reflect.Int64:
		b.role = roleInt
		return b, f, f.Size, f.Size, nil
	case sf.Type.Kind() == reflect.Pointer || sf.Type.Kind() == reflect.Slice:
		elem = sf.Type.Elem()
	}
	name, _, _ := strings.Cut(strings.Trim(f.Type, "(*"), "[")
	sub, err := c.layout(strings.TrimSuffix(name, ")"), elem)
	if err != nil {
		return b, f, 0, 0, err
	}
	b.sub = sub
	f.Size = sub.wire.RecordLen
	switch {
	case sf.Type.Kind() == reflect.Struct:
		b.role = roleStruct
		return b, f, f.Size, sub.wire.Align, nil
	case sf.Tag.Get("list") != "":
		b.role = roleList
	case sf.Type.Kind() == reflect.Pointer:
		b.role = rolePointer
	case strings.HasPrefix(f.Type, "("):
		b.role = rolePointers
	default:
		b.role = roleElements
	}
	return b, f, slotSize, pointerAlign, nil
}

// fixLinks gives link fields the size of the struct they point to: their own.
func (c *compiler) fixLinks(l *layout) error {
	for _, b := range l.bindings {
		if b.role == roleLink {
			l.wire.Fields[b.wire].Size = l.wire.RecordLen
		}
	}
	return nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

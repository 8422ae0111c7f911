package sstmsg

import (
	"fmt"
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Options choose the variant of a message to write.
type Options struct {
	Release Release // field set and sizes; only Params and step numbers differ
	Weft    bool    // add Weft's extra fields: to Weft peers only, ADIOS2 drops such messages
}

// smallBlob is the size from which blobs are referenced instead of copied.
const smallBlob = 4096

// Encode returns m as an FFS record in pieces, and its format. Large blobs are
// not copied: the pieces refer to m's memory, which must stay unchanged until
// they are written.
func Encode(m Message, o Options) (*ffs.Format, [][]byte, error) {
	c, err := compileFor(m, o)
	if err != nil {
		return nil, nil, err
	}
	if s, ok := m.(*TimestepMetadata); ok {
		if parts, ok := c.step.encode(s); ok {
			return c.format, parts, nil
		}
	}
	v := reflect.ValueOf(m).Elem()
	if parts, ok := c.flat.encode(v); ok {
		return c.format, parts, nil
	}
	parts, err := c.build(v).Buffers(smallBlob)
	if err != nil {
		return nil, nil, fmt.Errorf("sstmsg: encode %s: %w", m.message(), err)
	}
	return c.format, parts, nil
}

// Append appends m's FFS record to dst.
func Append(dst []byte, m Message, o Options) (*ffs.Format, []byte, error) {
	c, err := compileFor(m, o)
	if err != nil {
		return nil, dst, err
	}
	dst, err = c.build(reflect.ValueOf(m).Elem()).Append(dst)
	if err != nil {
		return nil, dst, fmt.Errorf("sstmsg: encode %s: %w", m.message(), err)
	}
	return c.format, dst, nil
}

func compileFor(m Message, o Options) (*compiled, error) {
	return compile(m, variant{release: o.Release, plane: planeOf(m), weft: o.Weft})
}

// build puts the message v into a record that is still to be encoded.
func (c *compiled) build(v reflect.Value) *ffs.Builder {
	b := c.format.NewRecord()
	c.top.fill(b, v)
	return b
}

// planeOf tells which data plane's structs m carries.
func planeOf(m Message) string {
	rdma := false
	switch m := m.(type) {
	case *ReaderRegister:
		rdma = m.Rdma != nil
	case *WriterResponse:
		rdma = m.Rdma != nil
	case *TimestepMetadata:
		rdma = m.Rdma != nil
	}
	if rdma {
		return "rdma"
	}
	return "evpath"
}

// fill sets every wire field of b from the Go struct v.
func (l *layout) fill(b *ffs.Builder, v reflect.Value) {
	for _, f := range l.bindings {
		fv := v.Field(f.goIdx)
		switch f.role {
		case roleInt:
			b.SetInt(f.wire, fv.Int())
		case roleText:
			if s := fv.String(); s != "" {
				b.SetText(f.wire, s)
			}
		case roleBlob:
			b.SetParts(f.wire, *blobIn(fv))
		case roleCount:
			b.SetInt(f.wire, countOf(v.Field(f.counts)))
		case roleStruct:
			b.SetStructs(f.wire, f.sub.child(b, fv))
		case rolePointer:
			if !fv.IsNil() {
				b.SetStructs(f.wire, f.sub.child(b, fv.Elem()))
			}
		case rolePointers, roleElements:
			b.SetStructs(f.wire, f.sub.children(b, fv)...)
		case roleList:
			if head := f.sub.chain(b, fv); head != nil {
				b.SetStructs(f.wire, head)
			}
		}
	}
}

func countOf(v reflect.Value) int64 {
	if v.Type() == blobType {
		return int64(blobIn(v).Len())
	}
	return int64(v.Len())
}

var blobType = reflect.TypeFor[Blob]()

// blobIn returns the Blob that v is, without the allocation of v.Interface.
func blobIn(v reflect.Value) *Blob { return v.Addr().Interface().(*Blob) }

func (l *layout) child(b *ffs.Builder, v reflect.Value) *ffs.Builder {
	c := b.Child(l.wire.Name)
	l.fill(c, v)
	return c
}

func (l *layout) children(b *ffs.Builder, v reflect.Value) []*ffs.Builder {
	out := make([]*ffs.Builder, v.Len())
	for i := range out {
		out[i] = l.child(b, v.Index(i))
	}
	return out
}

// chain links the elements of v and returns the first, nil if there is none.
func (l *layout) chain(b *ffs.Builder, v reflect.Value) *ffs.Builder {
	link := -1
	for _, f := range l.bindings {
		if f.role == roleLink {
			link = f.wire
		}
	}
	var head *ffs.Builder
	for i := v.Len() - 1; i >= 0; i-- {
		c := l.child(b, v.Index(i))
		if head != nil {
			c.SetStructs(link, head)
		}
		head = c
	}
	return head
}

package sstmsg

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// ErrUnknown says that a record is none of SST's messages.
var ErrUnknown = errors.New("not a message of SST")

// Decode reads the record rec, whose format is f, into the message that f
// names. Blobs are sub-slices of rec. Fields are found by name, so every
// release is understood; a field that the sender does not have is zero.
func Decode(f *ffs.Format, rec []byte) (Message, error) {
	p, err := planOf(f)
	if err != nil {
		return nil, fmt.Errorf("sstmsg: format %q: %w", f.Name(), err)
	}
	r, _, err := f.Record(rec)
	if err != nil {
		return nil, fmt.Errorf("sstmsg: %s: %w", f.Name(), err)
	}
	if s, ok := p.step.read(r.Top(), len(rec)); ok {
		return s, nil
	}
	m := reflect.New(p.t)
	budget := len(rec)
	if err := p.top.read(r.Top(), m.Elem(), &budget); err != nil {
		return nil, fmt.Errorf("sstmsg: %s: %w", f.Name(), err)
	}
	return m.Interface().(Message), nil
}

// wirePlane tells which data plane's structs a format describes.
func wirePlane(f *ffs.Format) string {
	for _, s := range f.Structs() {
		switch s.Name {
		case "RdmaReaderContactInfo", "RdmaWriterContactInfo", "RdmaBufferHandle":
			return "rdma"
		}
	}
	return "evpath"
}

// errTooMany guards against records whose offsets share targets so that few
// bytes describe a great many structs.
var errTooMany = errors.New("more structs than the record has bytes")

func (r *reader) read(w ffs.View, v reflect.Value, budget *int) error {
	if *budget--; *budget < 0 {
		return errTooMany
	}
	for n := range r.layout.bindings {
		b := &r.layout.bindings[n]
		i := r.wire[n]
		if i < 0 || b.role == roleCount || b.role == roleLink {
			continue
		}
		if err := r.field(n, w, i, v.Field(b.goIdx), budget); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// field sets the Go field dst of binding n from wire field i of w.
func (r *reader) field(n int, w ffs.View, i int, dst reflect.Value, budget *int) error {
	b := &r.layout.bindings[n]
	switch b.role {
	case roleInt:
		return readInt(w, i, dst)
	case roleText:
		s, _, err := w.Text(i)
		if err != nil {
			return err
		}
		dst.SetString(s)
	case roleBlob:
		raw, err := w.Raw(i)
		if err != nil {
			return err
		}
		*blobIn(dst) = ByteBlob(raw)
	default:
		return r.subs[n].structs(b.role, w, i, dst, budget)
	}
	return nil
}

func readInt(w ffs.View, i int, dst reflect.Value) error {
	n, err := w.Int(i)
	if err == nil && dst.OverflowInt(n) {
		err = fmt.Errorf("%d does not fit %d bits", n, dst.Type().Bits())
	}
	if err != nil {
		return err
	}
	dst.SetInt(n)
	return nil
}

// structs sets dst from the structs that wire field i of w leads to, which are
// read by r.
func (r *reader) structs(role role, w ffs.View, i int, dst reflect.Value, budget *int) error {
	if r == nil {
		_, err := w.At(i, 0) // says that the field leads to no struct
		return err
	}
	n, err := w.Count(i)
	if err != nil || n == 0 {
		return err
	}
	first, err := w.At(i, 0)
	if err != nil {
		return err
	}
	switch role {
	case roleStruct:
		return r.read(first, dst, budget)
	case rolePointer:
		if first.IsNil() {
			return nil
		}
		dst.Set(reflect.New(dst.Type().Elem()))
		return r.read(first, dst.Elem(), budget)
	case roleList:
		return r.list(first, dst, budget)
	}
	if n > *budget {
		return errTooMany
	}
	dst.Grow(n)
	dst.SetLen(n)
	for k := range n {
		view, err := w.At(i, k)
		if err == nil && view.IsNil() {
			err = errors.New("NULL")
		}
		if err == nil {
			err = r.read(view, dst.Index(k), budget)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", k, err)
		}
	}
	return nil
}

// list follows a chain; the budget ends a circular one.
func (r *reader) list(w ffs.View, dst reflect.Value, budget *int) error {
	for !w.IsNil() {
		n := dst.Len()
		dst.Set(reflect.Append(dst, reflect.Zero(dst.Type().Elem())))
		if err := r.read(w, dst.Index(n), budget); err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
		if r.link < 0 {
			return nil
		}
		left, err := w.Count(r.link)
		if err != nil || left == 0 {
			return err
		}
		if w, err = w.At(r.link, 0); err != nil {
			return err
		}
	}
	return nil
}

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
	m := newMessage(f.Name())
	if m == nil {
		return nil, fmt.Errorf("sstmsg: format %q: %w", f.Name(), ErrUnknown)
	}
	r, _, err := f.Record(rec)
	if err != nil {
		return nil, fmt.Errorf("sstmsg: %s: %w", f.Name(), err)
	}
	c, err := compile(m, variant{release: ReleaseMain, plane: wirePlane(f), weft: true})
	if err != nil {
		return nil, err
	}
	budget := len(rec)
	if err := c.top.read(r.Top(), reflect.ValueOf(m).Elem(), &budget); err != nil {
		return nil, fmt.Errorf("sstmsg: %s: %w", f.Name(), err)
	}
	return m, nil
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

func (l *layout) read(w ffs.View, v reflect.Value, budget *int) error {
	if *budget--; *budget < 0 {
		return errTooMany
	}
	for _, f := range l.bindings {
		i := w.Index(f.name)
		if i < 0 || f.role == roleCount || f.role == roleLink {
			continue
		}
		if err := f.read(w, i, v.Field(f.goIdx), budget); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// read sets the Go field dst from wire field i of w.
func (f *binding) read(w ffs.View, i int, dst reflect.Value, budget *int) error {
	switch f.role {
	case roleInt:
		n, err := w.Int(i)
		if err == nil && dst.OverflowInt(n) {
			err = fmt.Errorf("%d does not fit %d bits", n, dst.Type().Bits())
		}
		if err != nil {
			return err
		}
		dst.SetInt(n)
	case roleText:
		s, _, err := w.Text(i)
		if err != nil {
			return err
		}
		dst.SetString(s)
	case roleBlob:
		b, err := w.Raw(i)
		if err != nil {
			return err
		}
		dst.Set(reflect.ValueOf(ByteBlob(b)))
	default:
		return f.readStructs(w, i, dst, budget)
	}
	return nil
}

func (f *binding) readStructs(w ffs.View, i int, dst reflect.Value, budget *int) error {
	views, err := w.Structs(i)
	if err != nil || len(views) == 0 {
		return err
	}
	switch f.role {
	case roleStruct:
		return f.sub.read(views[0], dst, budget)
	case rolePointer:
		if views[0].IsNil() {
			return nil
		}
		dst.Set(reflect.New(dst.Type().Elem()))
		return f.sub.read(views[0], dst.Elem(), budget)
	case roleList:
		return f.readList(views[0], dst, budget)
	}
	if len(views) > *budget {
		return errTooMany
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(views), len(views)))
	for n, view := range views {
		if view.IsNil() {
			return fmt.Errorf("entry %d is NULL", n)
		}
		if err := f.sub.read(view, dst.Index(n), budget); err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
	}
	return nil
}

// readList follows a chain; the budget ends a circular one.
func (f *binding) readList(w ffs.View, dst reflect.Value, budget *int) error {
	link := ""
	for _, b := range f.sub.bindings {
		if b.role == roleLink {
			link = b.name
		}
	}
	for !w.IsNil() {
		elem := reflect.New(dst.Type().Elem()).Elem()
		if err := f.sub.read(w, elem, budget); err != nil {
			return fmt.Errorf("entry %d: %w", dst.Len(), err)
		}
		dst.Set(reflect.Append(dst, elem))
		i := w.Index(link)
		if i < 0 {
			return nil
		}
		next, err := w.Structs(i)
		if err != nil || len(next) == 0 {
			return err
		}
		w = next[0]
	}
	return nil
}

package sstmsg

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// errSplit says that a record cannot be read in two parts.
var errSplit = errors.New("not a record that ends in its data")

// Head reads the beginning of a record that is still arriving, and of which total
// bytes will come: of a message that ends in data, which a ReadReply and a Preload
// do. The message has everything but its data; those are the bytes of the record
// from offset on. ok is false for every other record, and for one that is not
// well-formed. head is kept nowhere.
func Head(f *ffs.Format, head []byte, total int) (m Message, offset int, ok bool) {
	v, offset, err := readHead(f, head, total)
	if err != nil {
		return nil, 0, false
	}
	return v.Addr().Interface().(Message), offset, true
}

// DecodeSplit is Decode for a record that lies in two pieces: what Head says comes
// before the data, and the data.
func DecodeSplit(f *ffs.Format, head, data []byte) (Message, error) {
	v, offset, err := readHead(f, head, len(head)+len(data))
	if err == nil && offset != len(head) {
		err = fmt.Errorf("%w: it begins at byte %d, not %d", errSplit, offset, len(head))
	}
	if err != nil {
		return nil, fmt.Errorf("sstmsg: %s: %w", f.Name(), err)
	}
	for i := range v.NumField() {
		if v.Field(i).Type() == blobType {
			*blobIn(v.Field(i)) = ByteBlob(data)
		}
	}
	return v.Addr().Interface().(Message), nil
}

// readHead reads the numbers of a message with one blob.
func readHead(f *ffs.Format, head []byte, total int) (v reflect.Value, offset int, err error) {
	p, err := planOf(f)
	if err != nil {
		return v, 0, err
	}
	t, ok := f.Tail(head, total)
	if !ok {
		return v, 0, errSplit
	}
	v = reflect.New(p.t).Elem()
	found := false
	for n := range p.top.layout.bindings {
		b, i := &p.top.layout.bindings[n], p.top.wire[n]
		switch {
		case i < 0:
		case b.role == roleInt:
			if err := readInt(t.Top, i, v.Field(b.goIdx)); err != nil {
				return v, 0, fmt.Errorf("%s: %w", b.name, err)
			}
		case b.role == roleBlob:
			found = i == t.Field
		case b.role != roleCount:
			return v, 0, errSplit
		}
	}
	if !found {
		return v, 0, errSplit
	}
	return v, t.Offset, nil
}

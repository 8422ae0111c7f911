package bp5

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

const (
	recordHeader     = 24 // docs/wire/bp5.md §1.4
	flatRecordHeader = 16 // of formats without strings and dynamic arrays
)

// recordWriter writes one FFS record: the base record, then what its slots
// point to. A slot holds the distance from the start of the base record. The
// order of the calls is the order of the bytes; ADIOS2's is field by field,
// depth first.
//
// wire: format id 12 | length of what follows the header u64 | 0 u32 | base
// record | targets of slots (docs/wire/bp5.md §1.4)
type recordWriter struct {
	b     []byte
	base  int // index of the base record in b
	start int // index of the header in b
}

// newRecord appends the header and a base record of n zero bytes.
func newRecord(dst []byte, id ffs.ID, n int) recordWriter {
	r := recordWriter{start: len(dst), base: len(dst) + recordHeader}
	r.b = append(dst, id[:]...)
	r.b = appendZeros(r.b, recordHeader-len(id)+n)
	return r
}

// newFlatRecord is newRecord for formats without slots: there is no length.
func newFlatRecord(dst []byte, id ffs.ID, n int) recordWriter {
	r := recordWriter{start: len(dst), base: len(dst) + flatRecordHeader}
	r.b = append(dst, id[:]...)
	r.b = appendZeros(r.b, flatRecordHeader-len(id)+n)
	return r
}

// finish fills in the length and returns everything.
func (r *recordWriter) finish() []byte {
	length := uint64(len(r.b) - r.base)
	binary.LittleEndian.PutUint64(r.b[r.start+ffs.IDLen:], length)
	return r.b
}

// putWord writes v at an offset of the base record, or of anything behind it.
func (r *recordWriter) putWord(off int, v uint64) {
	binary.LittleEndian.PutUint64(r.b[r.base+off:], v)
}

// pad goes to the next multiple of 8. The first target of a record starts there
// even if it is a string.
func (r *recordWriter) pad() { r.b = appendZeros(r.b, padding(len(r.b)-r.base)) }

// point makes the slot at off point to the next byte.
func (r *recordWriter) point(off int) { r.putWord(off, uint64(len(r.b)-r.base)) }

// words leaves the slot nil for an empty array, as FFS does.
func (r *recordWriter) words(off int, words []uint64) {
	if len(words) == 0 {
		return
	}
	r.pad()
	r.point(off)
	for _, w := range words {
		r.b = binary.LittleEndian.AppendUint64(r.b, w)
	}
}

// bytes leaves the slot nil for no bytes, as FFS does.
func (r *recordWriter) bytes(off int, data []byte) {
	if len(data) == 0 {
		return
	}
	r.pad()
	r.point(off)
	r.b = append(r.b, data...)
}

// text writes a string, which starts anywhere. An empty one has its NUL byte:
// it is not nil.
func (r *recordWriter) text(off int, s string) {
	r.point(off)
	r.b = append(r.b, s...)
	r.b = append(r.b, 0)
}

// texts writes an array of string slots, then the strings.
func (r *recordWriter) texts(off int, list []string) {
	if len(list) == 0 {
		return
	}
	r.pad()
	r.point(off)
	at := len(r.b) - r.base
	r.b = appendZeros(r.b, len(list)*slotSize)
	for i, s := range list {
		r.text(at+i*slotSize, s)
	}
}

// metaArray fills the MetaArray struct of v (docs/wire/bp5.md §2.3).
func (r *recordWriter) metaArray(v *encVar, a *ArrayMeta) {
	off := v.offset
	// The struct is in the base record; its lists follow in the order of its fields.
	r.putWord(off, uint64(a.Dims))
	r.putWord(off+slotSize, uint64(a.Blocks))
	r.putWord(off+2*slotSize, uint64(a.Dims*a.Blocks))
	r.words(off+3*slotSize, a.Shape)
	r.words(off+4*slotSize, a.Count)
	r.words(off+5*slotSize, a.Offset)
	r.words(off+6*slotSize, a.Location)
	next := off + metaArrayLen
	if v.desc.Operator {
		r.words(next, a.StoredSize)
		next += slotSize
	}
	if v.desc.MinMax != 0 {
		r.bytes(next, a.MinMax)
	}
}

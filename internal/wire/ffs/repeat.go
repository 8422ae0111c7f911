package ffs

import "bytes"

// part is a range of bytes of a struct.
type part struct{ from, to int }

// fixedParts returns the ranges of the struct that say how a record is to be read: all fields but
// the atoms in place that count nothing. Gaps are in none.
func (l *layout) fixedParts() (parts []part) {
	counts := make([]bool, len(l.fields))
	for i := range l.fields {
		for _, c := range l.fields[i].counts {
			counts[c] = true
		}
	}
	for i := range l.fields {
		f := &l.fields[i]
		if f.slot < 0 && !counts[i] {
			continue
		}
		p := part{f.offset, f.offset + f.span()}
		if n := len(parts); n > 0 && parts[n-1].to == p.from { // fields rise
			parts[n-1].to = p.to
		} else {
			parts = append(parts, p)
		}
	}
	return parts
}

// Repeat returns the record at the front of b if it differs from r in nothing but atoms in place
// of the top struct that count nothing. Such a record needs no check, which takes much longer than
// to compare. Else ok is false, also if b is no record at all, or r one with slots that point into the top
// struct, where atoms mean more: ask [Format.Record] then.
func (r Record) Repeat(b []byte) (again Record, ok bool) {
	if id, ok := RecordID(b); r.f == nil || r.inward || !ok || id != r.f.id {
		return Record{}, false
	}
	head, size, err := r.f.recordSize(b)
	if err != nil || size != len(r.body) {
		return Record{}, false
	}
	body, top := b[head:head+size:head+size], &r.f.layouts[0]
	for _, p := range top.fixed {
		if !bytes.Equal(body[p.from:p.to], r.body[p.from:p.to]) {
			return Record{}, false
		}
	}
	if !bytes.Equal(body[top.size:], r.body[top.size:]) {
		return Record{}, false
	}
	return Record{f: r.f, body: body}, true
}

package ffs

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Parse reads the format body at the front of b. n is the number of bytes it
// takes, by the length inside it; padding may follow. Time and memory are
// linear in n. The body is copied.
//
// A body of a big-endian or 32-bit machine, or of another version than 2, is
// ErrUnsupported; one that breaks the rules is ErrFormat; one that b does not
// hold completely is ErrTruncated.
func Parse(b []byte) (f *Format, n int, err error) {
	n, subs, err := parseOuter(b)
	if err != nil {
		return nil, 0, err
	}
	// One copy, of which all names are substrings: b is the caller's.
	body := string(b[:n])
	structs := make([]Struct, 0, 1+subs)
	at := outerLen
	for range 1 + subs {
		s, size, err := parseStruct(body[at:])
		if err != nil {
			return nil, 0, fmt.Errorf("%w (struct %d of the format, at offset %d)", err, len(structs), at)
		}
		structs = append(structs, s)
		at += size
	}
	if at != n { // bytes that belong to nothing: not what an encoder makes
		return nil, 0, fmt.Errorf("%w: the structs take %d bytes of a body of %d", ErrFormat, at, n)
	}
	layouts, err := resolve(structs)
	if err != nil {
		return nil, 0, err
	}
	own := []byte(body)
	return &Format{id: IDOf(own), body: own, structs: structs, layouts: layouts}, n, nil
}

// parseOuter reads the outer header: the length of the body and the number of
// structs behind the top one.
func parseOuter(b []byte) (n, subs int, err error) {
	if len(b) < outerLen {
		return 0, 0, fmt.Errorf("%w: %d bytes of the format header's %d", ErrTruncated, len(b), outerLen)
	}
	if err := checkMachine(b[2], b[3]); err != nil {
		return 0, 0, err
	}
	n = int(binary.BigEndian.Uint16(b)) | int(binary.BigEndian.Uint16(b[6:]))<<16
	if n < outerLen {
		return 0, 0, fmt.Errorf("%w: length %d in the format header", ErrFormat, n)
	}
	if n > len(b) {
		return 0, 0, fmt.Errorf("%w: %d bytes of a format body of %d", ErrTruncated, len(b), n)
	}
	return n, int(b[4]), nil
}

// checkMachine tells a description of another machine from one that is
// damaged: the former may be right, and the error should say so.
func checkMachine(order, version byte) error {
	if order != orderLittle {
		return fmt.Errorf("%w: big-endian (byte order %d)", ErrUnsupported, order)
	}
	if version != bodyVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrUnsupported, version, bodyVersion)
	}
	return nil
}

// header is the fixed part of a struct description.
type header struct {
	size, name, fields, recordLen, align int
}

// parseHeader reads the fixed part of the struct description at the front of
// s and compares its counts with the bytes that are there.
func parseHeader(s string) (header, error) {
	if len(s) < structLen {
		return header{}, fmt.Errorf("%w: struct description cut off", ErrFormat)
	}
	b := []byte(s[:structLen])
	if err := checkMachine(b[3], b[2]); err != nil {
		return header{}, err
	}
	le, be := binary.LittleEndian, binary.BigEndian
	switch {
	case b[16] != pointerSize:
		return header{}, fmt.Errorf("%w: %d-byte pointers", ErrUnsupported, b[16])
	case b[17] != structLen:
		return header{}, fmt.Errorf("%w: struct header of %d bytes", ErrUnsupported, b[17])
	case le.Uint16(b[18:]) != floatLittle:
		return header{}, fmt.Errorf("%w: floating point format %d", ErrUnsupported, le.Uint16(b[18:]))
	}
	h := header{
		size:      int(be.Uint16(b)) | int(be.Uint16(b[24:]))<<16,
		name:      int(le.Uint32(b[4:])),
		fields:    int(le.Uint32(b[8:])),
		recordLen: int(le.Uint32(b[12:])),
		align:     int(b[23]),
	}
	if h.size < structLen || h.size > len(s) {
		return header{}, fmt.Errorf("%w: struct description of %d bytes, %d are left", ErrFormat, h.size, len(s))
	}
	// The table must be there before anything of its size is allocated.
	if h.fields > (h.size-structLen)/entryLen {
		return header{}, fmt.Errorf("%w: %d fields in a struct description of %d bytes", ErrFormat, h.fields, h.size)
	}
	return h, nil
}

// parseStruct reads the struct description at the front of s and returns its
// length. The optional-info table is not looked at.
func parseStruct(s string) (Struct, int, error) {
	h, err := parseHeader(s)
	if err != nil {
		return Struct{}, 0, err
	}
	names := nameTable{desc: s[:h.size], left: h.size}
	out := Struct{RecordLen: h.recordLen, Align: h.align, Fields: make([]Field, h.fields)}
	if out.Name, err = names.at(h.name); err != nil {
		return Struct{}, 0, fmt.Errorf("%w: its name", err)
	}
	for i := range out.Fields {
		at := structLen + i*entryLen
		e := []byte(s[at : at+entryLen])
		f := &out.Fields[i]
		if f.Name, err = names.at(int(binary.LittleEndian.Uint32(e))); err == nil {
			f.Type, err = names.at(int(binary.LittleEndian.Uint32(e[4:])))
		}
		if err != nil {
			return Struct{}, 0, fmt.Errorf("%w: names of field %d of %q", err, i, clip(out.Name))
		}
		f.Size = int(binary.LittleEndian.Uint32(e[8:]))
		f.Offset = int(binary.LittleEndian.Uint32(e[12:]))
	}
	return out, h.size, nil
}

// nameTable reads the strings of a struct description. Real descriptions hold
// each string once; so all of them together may not be longer than the
// description. Without that limit, fields that share one long name would make
// the work quadratic.
type nameTable struct {
	desc string
	left int
}

// at returns the string at an offset of the description. It is a substring:
// names cost no memory of their own.
func (t *nameTable) at(off int) (string, error) {
	if off < structLen || off >= len(t.desc) {
		return "", fmt.Errorf("%w: string offset %d in a description of %d bytes", ErrFormat, off, len(t.desc))
	}
	s := t.desc[off:]
	s = s[:min(len(s), t.left)]
	n := strings.IndexByte(s, 0)
	if n < 0 {
		return "", fmt.Errorf("%w: string at offset %d does not end or shares its bytes", ErrFormat, off)
	}
	t.left -= n + 1
	return s[:n], nil
}

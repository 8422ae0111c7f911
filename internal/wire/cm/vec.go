package cm

import "encoding/binary"

// MaxDataHeader is the most bytes that AppendDataHeader appends.
const MaxDataHeader = longHeaderSize

// AppendDataHeader writes, behind b, the header of the data message whose record
// is the concatenation of parts. The parts are not joined: a small message has
// its checksum added up part by part, a record longer than MaxData gets the CMB
// header. Send the header and the parts in one go: a real peer reads a unit with
// blocking reads on the thread that serves all its connections (cm.md §9).
func AppendDataHeader(b []byte, parts [][]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > MaxData {
		return appendLongHeader(b, n)
	}
	var header [dataHeaderSize]byte
	binary.LittleEndian.PutUint32(header[4:], uint32(n))
	word := magicData
	if dataHeaderSize+n < checksumLimit {
		word |= uint32(sum8(header[4:]) + sumParts(parts))
	}
	binary.LittleEndian.PutUint32(header[:], word)
	return append(b, header[:]...)
}

// AppendDataVec appends to vec the list of slices that make up the data message
// whose record is the concatenation of parts: a new header, then the parts
// themselves, empty ones left out.
func AppendDataVec(vec, parts [][]byte) [][]byte {
	vec = append(vec, AppendDataHeader(make([]byte, 0, MaxDataHeader), parts))
	for _, p := range parts {
		if len(p) > 0 {
			vec = append(vec, p)
		}
	}
	return vec
}

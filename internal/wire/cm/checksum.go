package cm

// checksumLimit is the total size, header and record, from which on a data
// message carries no checksum (cm.md §5.1).
const checksumLimit = 10240

// sum8 adds up the bytes of b, modulo 256.
func sum8(b []byte) byte {
	var s byte
	for _, x := range b {
		s += x
	}
	return s
}

// sumParts adds up the bytes of all parts, modulo 256.
func sumParts(parts [][]byte) byte {
	var s byte
	for _, p := range parts {
		s += sum8(p)
	}
	return s
}

// checksumOK reports whether a data message may be taken: a checksum byte of 0
// means that there is none to compare (cm.md §5.1). rest is everything from
// offset 4 on, in parts.
func checksumOK(got byte, header, record []byte) bool {
	return got == 0 || got == sum8(header)+sum8(record)
}

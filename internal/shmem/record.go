package shmem

import "encoding/binary"

// Record is the body of one message in a ring: words of 8 bytes that say what it is, then its payload. It begins 8
// bytes after a multiple of 64, so its first 7 words share a cache line with the word that the ring itself needs.
//
// The producer writes it with Store and Payload before Commit. The consumer reads it with Load and Payload before
// Advance; the memory is the producer's, who can change it at any time if it is hostile.
type Record []byte

// Load reads word i, exactly once: use the result, do not load again what was checked. A word that is not
// all inside of the record is 0.
func (r Record) Load(i int) uint64 {
	if i < 0 || i >= len(r)/8 {
		return 0
	}
	return word64(r, uint64(i)*8).Load()
}

// Store writes word i, for the producer. A word that is not all inside of the record is not written.
func (r Record) Store(i int, v uint64) {
	if i >= 0 && i < len(r)/8 {
		binary.NativeEndian.PutUint64(r[i*8:], v)
	}
}

// Payload is what follows the first words of the record, nil if there is nothing.
func (r Record) Payload(words int) []byte {
	if words < 0 || words*8 >= len(r) {
		return nil
	}
	return r[words*8:]
}

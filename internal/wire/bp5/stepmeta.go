package bp5

import (
	"fmt"
	"io"
)

// ParseStepMeta cuts one step of md.0, the range that its StepIndex gives, into the metadata records of the writers and
// the attribute records. writers is the writer count of the WriterMap that holds for the step.
//
// meta has one record for each rank. attrs has as many slots, nil where there is none; a slot's number is not a rank.
// Records may have up to 7 zero bytes behind them. All slices point into b.
//
// A b that is too short gives io.ErrUnexpectedEOF, a b that contradicts itself ErrBadFile.
//
// wire: total u64 (what follows) | length u64 per writer | length u64 per attribute slot | metadata records | attribute
// records (docs/wire/bp5.md §6.4)
func ParseStepMeta(b []byte, writers int) (meta, attrs [][]byte, err error) {
	if writers <= 0 {
		return nil, nil, fmt.Errorf("bp5: step metadata for %d writers: %w", writers, ErrBadFile)
	}
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("bp5: step metadata of %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	// Divided, not multiplied: writers is a number from a file.
	total, body := word(b, 0), b[8:]
	switch {
	case total/16 < uint64(writers):
		return nil, nil, fmt.Errorf("bp5: step metadata of %d bytes for %d writers: %w", total, writers, ErrBadFile)
	case total > uint64(len(body)):
		return nil, nil, fmt.Errorf("bp5: step metadata has %d of %d bytes: %w", len(body), total, io.ErrUnexpectedEOF)
	case total < uint64(len(body)):
		return nil, nil, fmt.Errorf("bp5: step metadata says %d bytes, its index record %d: %w", total, len(body), ErrBadFile)
	}
	recs, err := cutRecords(body[:16*writers], body[16*writers:])
	if err != nil {
		return nil, nil, err
	}
	return recs[:writers:writers], recs[writers:], nil
}

// cutRecords cuts b into pieces of the lengths that the words of table give.
func cutRecords(table, b []byte) ([][]byte, error) {
	recs := make([][]byte, len(table)/8)
	for i := range recs {
		n := word(table, i)
		if n > uint64(len(b)) {
			return nil, fmt.Errorf("bp5: step metadata: record %d of %d has %d bytes, %d are left: %w", i, len(recs), n, len(b), ErrBadFile)
		}
		if n > 0 {
			recs[i] = b[:n:n]
		}
		b = b[n:]
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("bp5: step metadata: %d bytes behind the last record: %w", len(b), ErrBadFile)
	}
	return recs, nil
}

// AppendStepMeta appends one step of md.0 to b, and pads each record to a multiple of 8. meta has one record for each
// rank; attrs has at most as many, and nil or missing ones are written as absent. What was appended is what the step's
// index record describes.
func AppendStepMeta(b []byte, meta, attrs [][]byte) []byte {
	slots := make([][]byte, 2*len(meta))
	copy(slots, meta)
	copy(slots[len(meta):], attrs)
	total := 8 * len(slots)
	for _, r := range slots {
		total += len(r) + padding(len(r))
	}
	b = appendWords(b, uint64(total))
	for _, r := range slots {
		b = appendWords(b, uint64(len(r)+padding(len(r))))
	}
	for _, r := range slots {
		b = appendZeros(append(b, r...), padding(len(r)))
	}
	return b
}

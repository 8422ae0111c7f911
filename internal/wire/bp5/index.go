package bp5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What can be wrong with the files of a dataset. Wrapped with the place and the reason; test with errors.Is. Bytes that
// end too early are reported as io.ErrUnexpectedEOF, because in a live dataset they may still come.
var (
	// ErrNotBP says that the bytes are no ADIOS2 index at all: wrong file, or a stream's contact file.
	ErrNotBP = errors.New("not a BP index")
	// ErrByteOrder says that the dataset was written on a big-endian machine.
	ErrByteOrder = errors.New("big-endian dataset")
	// ErrBPVersion says that the dataset is BP, but not version 5.2 (docs/wire/bp5.md §6.2).
	ErrBPVersion = errors.New("unsupported BP version")
	// ErrBadFile says that a record of md.idx, md.0 or mmd.0 contradicts itself.
	ErrBadFile = errors.New("damaged BP5 file")
)

// Constants of the md.idx header (docs/wire/bp5.md §6.2).
const (
	// IndexHeaderSize is the length of the header, the first bytes of md.idx.
	IndexHeaderSize = 64
	// IndexActiveOffset is the position of the byte that is 1 while a writer is active. Readers that follow a live
	// dataset read it again and again; a writer sets it to 0 in place when it closes.
	IndexActiveOffset = 39
	// BPVersion and BPMinor are the only file version that is read and written.
	BPVersion = 5
	BPMinor   = 2
)

const (
	indexSignature  = "ADIOS-BP v"        // first bytes of md.idx of BP4 and BP5
	indexTitle      = " Index Table"      // follows the version in the header text
	contactPreamble = "#ADIOS2-SST"       // docs/wire/sst.md §2: first bytes of a stream's contact file
	indexFixedText  = len(indexSignature) // position of the version in the text
	indexTextSize   = 32                  // the text, NUL padded
	versionZero     = '0'                 // version numbers are stored as this character plus the number
	rowMajorMark    = 'n'                 // byte 40
	columnMajorMark = 'y'                 // byte 40
)

// IndexHeader is the header of md.idx.
//
// wire: text [32] | major, minor, patch as '0'+n | 0 | big-endian u8 | BP version u8 | BP minor u8 | active u8 |
// 'y' or 'n' column-major u8 | flatten u8 | file id u32 | 18 zero bytes (docs/wire/bp5.md §6.2)
type IndexHeader struct {
	Major, Minor, Patch int    // release of ADIOS2 that wrote the dataset, 0 to 207 each
	BPVersion, BPMinor  uint8  // 5 and 2; Append writes these whatever the fields say
	Active              bool   // a writer is active, or died
	ColumnMajor         bool   // dimensions are stored in column-major order
	Flatten             bool   // readers are to present all steps as one, later blocks over earlier ones
	FileID              uint32 // random nonzero number of newest ADIOS2, 0 in older files; readers ignore it
}

// ParseIndexHeader parses the first IndexHeaderSize bytes of md.idx; b may be longer. A shorter b that begins like a
// header gives io.ErrUnexpectedEOF: the writer has not finished its first step. Other errors are ErrNotBP, ErrByteOrder,
// ErrBPVersion and ErrBadFile.
func ParseIndexHeader(b []byte) (IndexHeader, error) {
	if err := checkSignature(b); err != nil {
		return IndexHeader{}, err
	}
	if len(b) == 0 {
		return IndexHeader{}, fmt.Errorf("bp5: md.idx is empty: no finished step yet: %w", io.ErrUnexpectedEOF)
	}
	if len(b) < IndexHeaderSize {
		return IndexHeader{}, fmt.Errorf("bp5: md.idx has %d of %d header bytes: no finished step yet: %w", len(b), IndexHeaderSize, io.ErrUnexpectedEOF)
	}
	h := IndexHeader{
		// Wraps for bytes below '0', which no release writes: a strange release number is no reason to refuse the data.
		Major: int(b[32] - versionZero), Minor: int(b[33] - versionZero), Patch: int(b[34] - versionZero),
		BPVersion: b[37], BPMinor: b[38],
		Active:      b[IndexActiveOffset] == 1,
		ColumnMajor: b[40] == columnMajorMark,
		Flatten:     b[41] == 1,
		FileID:      binary.LittleEndian.Uint32(b[42:]),
	}
	return h, h.check(b)
}

// checkSignature looks at no more than what is there, so that a short foreign file is told from a young dataset.
func checkSignature(b []byte) error {
	n := min(len(b), len(indexSignature))
	if string(b[:n]) == indexSignature[:n] {
		return nil
	}
	if bytes.HasPrefix(b, []byte(contactPreamble)) {
		return fmt.Errorf("bp5: %w: this is the contact file of a running stream, not a file to read", ErrNotBP)
	}
	return fmt.Errorf("bp5: md.idx begins with %q, want %q: %w", b[:n], indexSignature, ErrNotBP)
}

// check refuses what cannot be read, with the reason that helps a user most.
func (h IndexHeader) check(b []byte) error {
	// The version first: BP4 has the same signature, but other bytes behind byte 37.
	if h.BPVersion != BPVersion {
		return fmt.Errorf("bp5: dataset is BP version %d, want %d: %w", h.BPVersion, BPVersion, ErrBPVersion)
	}
	if b[36] != 0 {
		return fmt.Errorf("bp5: md.idx byte 36 is %d: %w", b[36], ErrByteOrder)
	}
	if h.BPMinor != BPMinor {
		return fmt.Errorf("bp5: dataset is BP version %d.%d, want %d.%d: %w", h.BPVersion, h.BPMinor, BPVersion, BPMinor, ErrBPVersion)
	}
	if c := b[40]; c != columnMajorMark && c != rowMajorMark && c != 0 {
		return fmt.Errorf("bp5: md.idx byte 40 (array order) is %#02x, want 'y' or 'n': %w", c, ErrBadFile)
	}
	return nil
}

// Append appends the IndexHeaderSize bytes of the header to b. The text and the version are made as ADIOS2 makes them.
func (h IndexHeader) Append(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, IndexHeaderSize)...)
	out := b[at:]
	v := [3]byte{versionZero + byte(h.Major), versionZero + byte(h.Minor), versionZero + byte(h.Patch)}
	text := append([]byte(indexSignature), v[0], '.', v[1], '.', v[2])
	copy(out[:indexTextSize], append(text, indexTitle...))
	copy(out[32:], v[:])
	out[37], out[38] = BPVersion, BPMinor
	out[40] = rowMajorMark
	if h.Active {
		out[IndexActiveOffset] = 1
	}
	if h.ColumnMajor {
		out[40] = columnMajorMark
	}
	if h.Flatten {
		out[41] = 1
	}
	binary.LittleEndian.PutUint32(out[42:], h.FileID)
	return b
}

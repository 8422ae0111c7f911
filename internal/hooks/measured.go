package hooks

import (
	"fmt"
	"io"
)

// maxRead is how many bytes of files are read for a report. A process may list thousands of objects, each with as much as maxSection and maxTables
// let it have, which took days to read; honest ones are far from that.
const maxRead = 1 << 32

var errMuch = fmt.Errorf("%w: more than %d bytes of files are to be read", errObject, int64(maxRead))

// measured is a file of which the reading is counted.
type measured struct {
	io.ReaderAt
	read *int64
}

func (m measured) ReadAt(b []byte, off int64) (int, error) {
	if *m.read += int64(len(b)); *m.read > maxRead {
		return 0, errMuch
	}
	return m.ReaderAt.ReadAt(b, off)
}

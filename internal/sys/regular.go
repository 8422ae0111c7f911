package sys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is what is no file of bytes: a pipe, a device, a folder.
var ErrNotRegular = errors.New("sys: not a regular file")

// OpenRegular opens a regular file for reading, and never waits: what lies at the path may be a pipe that nobody writes to, also if it was a file a
// moment ago. Looking first keeps devices closed, of which some act when they are opened.
func OpenRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

package bp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// file is one file of a dataset.
type file interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// folder opens the files of a dataset by base name. Tests have one in memory.
type folder interface {
	Open(name string) (file, error)
}

// dir is a dataset on disk.
type dir string

// Open refuses what is no plain file: opening a named pipe would wait until
// somebody writes to it.
func (d dir) Open(name string) (file, error) {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file (%v): %w", path, info.Mode(), ErrDamaged)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

type diskFile struct{ *os.File }

// Size asks the file system each time: the file may grow.
func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

const (
	indexName   = "md.idx"
	metaName    = "md.0"
	formatsName = "mmd.0"
	objectStore = "s3.json"

	contactSuffix   = ".sst"
	contactPreamble = "#ADIOS2-SST" // docs/wire/sst.md §2
)

// dataName returns the name of a data file (docs/wire/bp5.md §6).
func dataName(subfile uint64) string { return fmt.Sprintf("data.%d", subfile) }

// errNoIndex says that a folder has no index: a writer makes the folder first.
var errNoIndex = errors.New("has no " + indexName)

// inspect tells what is at path when it is no dataset; nil means that it may
// be one.
func inspect(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if isContact(path + contactSuffix) {
			return fmt.Errorf("bp: %s: %w", path+contactSuffix, ErrStream)
		}
		return fmt.Errorf("bp: %w", err)
	case err != nil:
		return fmt.Errorf("bp: %w", err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("bp: %s is neither a folder nor a file (%v): %w", path, info.Mode(), ErrNotBP)
	case !info.IsDir() && isContact(path):
		return fmt.Errorf("bp: %s: %w", path, ErrStream)
	case !info.IsDir() && info.Size() == 0:
		return fmt.Errorf("bp: %s: an empty file: %w", path, ErrNotBP)
	case !info.IsDir():
		return fmt.Errorf("bp: %s: a BP5 dataset is a folder, this is a file: %w", path, ErrNotBP)
	}
	// Newer ADIOS2 keeps the index in the folder and the data elsewhere: reading
	// would find holes.
	if _, err := os.Stat(filepath.Join(path, objectStore)); err == nil {
		return fmt.Errorf("bp: %s has %s: %w", path, objectStore, ErrObjectStore)
	}
	if _, err := os.Stat(filepath.Join(path, indexName)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bp: %s %w: %w", path, errNoIndex, ErrNotBP)
	}
	return nil
}

// isContact reports whether the file is the contact file of a stream, by its
// first bytes: its name is the user's choice.
func isContact(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // opening a named pipe would wait
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(contactPreamble))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, []byte(contactPreamble))
}

// clean removes the slashes that shells add to a folder's name.
func clean(path string) string {
	if p := strings.TrimRight(path, "/"); p != "" {
		return p
	}
	return path
}

package sst

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/suggest"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// A contact file is two lines: a magic word, and the writer's stream number
// and contact string (docs/wire/sst.md §2). On a screen it is the second alone.
const (
	contactMagic  = "#ADIOS2-SST v0\n"
	contactSuffix = ".sst"
	contactLimit  = 64 << 10 // bytes; a contact list has at most 255 short entries
)

// contactFile is the content of a contact file.
type contactFile struct {
	stream  int64
	contact cm.Contact
}

// contactPath returns the path of the contact file of a stream name, with and
// without the suffix meaning the same.
func contactPath(name string) string {
	return strings.TrimSuffix(name, contactSuffix) + contactSuffix
}

// errNoName says that a stream has no name.
var errNoName = errors.New("a stream needs a name")

// streamPath returns the absolute path of the contact file of a stream.
func streamPath(name string) (string, error) {
	path := contactPath(name)
	if name == "" || filepath.Base(path) == contactSuffix {
		return "", fmt.Errorf("%q: %w", name, errNoName)
	}
	return filepath.Abs(path)
}

func (c contactFile) bytes() []byte { return []byte(contactMagic + c.line()) }

// line is what a reader needs, on one line.
func (c contactFile) line() string { return fmt.Sprintf("%#x:%s", uint64(c.stream), c.contact) }

// parseContactFile reads the content of a contact file.
func parseContactFile(b []byte) (contactFile, error) {
	rest, ok := bytes.CutPrefix(b, []byte(contactMagic))
	if !ok {
		return contactFile{}, fmt.Errorf("%w: does not begin with %q", ErrContact, strings.TrimSpace(contactMagic))
	}
	c, err := parseContactLine(strings.TrimRight(string(rest), "\n"))
	if err != nil {
		return contactFile{}, fmt.Errorf("%w: %w", ErrContact, err)
	}
	return c, nil
}

func parseContactLine(line string) (contactFile, error) {
	id, contact, ok := strings.Cut(line, ":")
	if !ok {
		return contactFile{}, errors.New("no colon after its stream number")
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(id, "0x"), 16, 64)
	if err != nil || n == 0 {
		return contactFile{}, fmt.Errorf("stream number %.40q", id)
	}
	c, err := cm.ParseContact(contact)
	if err != nil {
		return contactFile{}, err
	}
	return contactFile{stream: int64(n), contact: c}, nil
}

// printContact tells people the contact of a stream (RegistrationMethod Screen).
// The line that counts comes second, after a tab, as ADIOS2 prints it.
func printContact(to io.Writer, name string, c contactFile) error {
	_, err := fmt.Fprintf(to, "SST stream %q: readers need the line that follows.\n\t%s\n", name, c.line())
	if err != nil {
		return fmt.Errorf("printing the contact of %s: %w", name, err)
	}
	return nil
}

var errNoLine = errors.New("only empty lines")

// readScreen reads the line that printContact, or an ADIOS2 writer, has printed.
// It takes nothing from r that lies behind the line. Lines before it that are no
// contact, such as the rest of what the writer printed, are skipped. It blocks as
// r does.
func readScreen(r io.Reader) (contactFile, error) {
	var line []byte
	one, last := make([]byte, 1), errNoLine
	for n := 0; n < contactLimit; n++ {
		_, err := io.ReadFull(r, one)
		if err == nil && one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			c, bad := parseContactLine(text)
			if bad == nil {
				return c, nil
			}
			last = bad
		}
		line = line[:0]
		if err != nil {
			return contactFile{}, fmt.Errorf("%w: the input ends without one: %w: %w", ErrContact, last, err)
		}
	}
	return contactFile{}, fmt.Errorf("%w: none in %d bytes of input: %w", ErrContact, contactLimit, last)
}

// readContact reads the contact file at path.
func readContact(path string) (contactFile, error) {
	b, err := readSmall(path)
	if err != nil {
		return contactFile{}, err
	}
	c, err := parseContactFile(b)
	if err != nil {
		return contactFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// readSmall reads a regular file of at most contactLimit bytes. Of anything else
// it reads nothing: a pipe, say, would block.
func readSmall(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: %w: it is a directory; a BP5 file is read with package bp", path, ErrContact)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w: not a regular file", path, ErrContact)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, contactLimit+1))
	if err == nil && len(b) > contactLimit {
		err = fmt.Errorf("%s: %w: longer than %d bytes", path, ErrContact, contactLimit)
	}
	return b, err
}

// writeContact makes the contact file appear whole, in place of an older one.
func writeContact(path string, c contactFile, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("contact file %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("contact file %s: %w", path, err)
		}
	}()
	_, err = f.Write(c.bytes())
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// removeContact removes the contact file unless it is another writer's by now.
func removeContact(path string, c contactFile) error {
	b, err := readSmall(path)
	if err != nil || !bytes.Equal(b, c.bytes()) {
		return nil
	}
	return os.Remove(path)
}

// similarStreams lists streams in the folder of path whose names are like it.
func similarStreams(path string) []string {
	matches, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+contactSuffix))
	if err != nil || len(matches) == 0 {
		return nil
	}
	names := make([]string, 0, len(matches))
	for _, m := range matches {
		names = append(names, strings.TrimSuffix(filepath.Base(m), contactSuffix))
	}
	const enough = 5
	want := strings.TrimSuffix(filepath.Base(path), contactSuffix)
	if near := suggest.Nearest(want, names); near != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return n == near })
		names = append([]string{near}, names...)
	}
	return names[:min(len(names), enough)]
}

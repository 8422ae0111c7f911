package cohort

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// Limits of what rank 0 publishes.
const (
	maxContact   = 16 << 10 // bytes of a file
	maxAddresses = 32
	contactMagic = "weft-cohort 1"
)

// contact is what the other ranks need to find rank 0: text, one thing a line.
//
//	weft-cohort 1
//	id 32 hexadecimal digits
//	size N
//	token TEXT
//	addr HOST:PORT      once or more
//	end
type contact struct {
	id    cohortID
	size  int
	token string
	addrs []string
}

func (c *contact) append(b []byte) []byte {
	b = fmt.Appendf(b, "%s\nid %v\nsize %d\ntoken %s\n", contactMagic, c.id, c.size, c.token)
	for _, a := range c.addrs {
		b = fmt.Appendf(b, "addr %s\n", a)
	}
	return append(b, "end\n"...)
}

// parseContact reads a contact. Where it is cut off there is no last line, and
// that is an error.
func parseContact(b []byte) (contact, error) {
	var c contact
	if len(b) > maxContact {
		return c, fmt.Errorf("%w: contact of more than %d bytes", ErrLimit, maxContact)
	}
	text, ok := bytes.CutSuffix(b, []byte("\nend\n"))
	if !ok {
		return c, fmt.Errorf("contact: %w: no last line: %w", ErrProtocol, io.ErrUnexpectedEOF)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 5 || lines[0] != contactMagic {
		return c, fmt.Errorf("contact: %w: it is not %q with all lines", ErrProtocol, contactMagic)
	}
	id, ok1 := strings.CutPrefix(lines[1], "id ")
	size, ok2 := strings.CutPrefix(lines[2], "size ")
	token, ok3 := strings.CutPrefix(lines[3], "token ")
	if !ok1 || !ok2 || !ok3 || token == "" {
		return c, fmt.Errorf("contact: %w: no id, size and token", ErrProtocol)
	}
	c.token = token
	n, err := environment{"size": size}.number("size")
	if c.size = n; err != nil {
		return c, fmt.Errorf("contact: %w: %w", ErrProtocol, err)
	}
	if err := c.id.parse(id); err != nil {
		return c, fmt.Errorf("contact: %w", err)
	}
	return c, c.parseAddrs(lines[4:])
}

func (c *contact) parseAddrs(lines []string) error {
	if len(lines) > maxAddresses {
		return fmt.Errorf("contact: %w: %d addresses", ErrLimit, len(lines))
	}
	for _, line := range lines {
		addr, ok := strings.CutPrefix(line, "addr ")
		if _, _, err := net.SplitHostPort(addr); !ok || err != nil {
			return fmt.Errorf("contact: %w: %q is not an address", ErrProtocol, line)
		}
		c.addrs = append(c.addrs, addr)
	}
	return nil
}

func (id *cohortID) parse(text string) error {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != idLen {
		return fmt.Errorf("%w: %q is not the id of a cohort", ErrProtocol, text)
	}
	copy(id[:], b)
	return nil
}

// contactPath names the file for a job and a name within it. Whatever they are,
// it is one file name, and another one for each pair.
func contactPath(dir, job, name string) string {
	sum := sha256.Sum256([]byte(job + "\x00" + name))
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, job+"-"+name)
	plain = strings.Trim(plain[:min(len(plain), 80)], "-")
	return filepath.Join(dir, fmt.Sprintf(".weft-cohort-%s-%s", plain, hex.EncodeToString(sum[:4])))
}

// publish writes the contact, so that others see all of it or nothing, and nobody
// but this user can read it.
func (c *contact) publish(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return fmt.Errorf("cohort: rank 0 publishes its address: %w", err)
	}
	_, err = f.Write(c.append(nil))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cohort: rank 0 publishes its address: %w", err)
	}
	return nil
}

// withdraw removes the file of a contact, unless it is another's by now.
func (c *contact) withdraw(path string) error {
	there, err := readContact(path)
	if err == nil && there.id == c.id {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readContact reads a file. The folder is opened first: a client of a network file
// system then asks its server what is in there, where it may otherwise remember
// for half a minute that the file was not.
func readContact(path string) (contact, error) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return contact{}, err
	}
	_ = d.Close()
	f, err := os.Open(path)
	if err != nil {
		return contact{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxContact+1))
	if err != nil {
		return contact{}, err
	}
	c, err := parseContact(b)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// watch is the finder of a rank whose rank 0 publishes itself in a file. It polls:
// file systems that several hosts share offer no event.
type watch struct {
	path string
	size int
}

const (
	pollFirst = 50 * time.Millisecond
	pollLater = 100 * time.Millisecond
	pollMany  = 100 // looks, after which pollLater holds
)

func (w *watch) find(ctx context.Context, note func(error)) (place, error) {
	for n := 0; ; n++ {
		c, err := readContact(w.path)
		if err == nil && c.size != w.size {
			err = fmt.Errorf("%s: %w: it is of a cohort of %d ranks, not %d", w.path, ErrRefused, c.size, w.size)
		}
		if err == nil {
			return place{addrs: c.addrs, id: &c.id, token: c.token, from: "the file " + w.path, old: true}, nil
		}
		note(err)
		delay := pollFirst
		if n >= pollMany {
			delay = pollLater
		}
		if err := tcp.Pause(ctx, delay); err != nil {
			return place{}, fmt.Errorf("the file %s, in which it publishes itself: %w", w.path, err)
		}
	}
}

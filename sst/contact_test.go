package sst

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// A contact file of 2.10.2, as captured (docs/wire/cm.md §2.3 has its contact).
const realContact = "#ADIOS2-SST v0\n0x55d1c3f0a2b0:AAIBAJTJ8o0BwQAAATkCmAEAAH9JOEt3AwAAAAMAbG8AAAAA"

func ourContact(t testing.TB, id uint32) contactFile {
	t.Helper()
	c, err := cm.NewContact(netip.MustParseAddrPort("127.0.0.1:4711"), id)
	if err != nil {
		t.Fatal(err)
	}
	return contactFile{stream: 1<<62 + int64(id), contact: c.WithMark()}
}

func TestParseContactFile(t *testing.T) {
	c, err := parseContactFile([]byte(realContact))
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.contact.Addr()
	if err != nil || c.stream != 0x55d1c3f0a2b0 || addr.String() != "127.0.0.1:49409" {
		t.Errorf("stream %#x at %v, %v", c.stream, addr, err)
	}
	if d := cmp.Diff(realContact, string(c.bytes())); d != "" {
		t.Errorf("written again it differs:\n%s", d)
	}
	if _, err := parseContactFile([]byte(realContact + "\n")); err != nil {
		t.Errorf("with a newline, as an editor leaves it: %v", err)
	}
	for what, text := range map[string]string{
		"empty":             "",
		"another magic":     strings.Replace(realContact, "v0", "v1", 1),
		"no newline":        strings.Replace(realContact, "\n", "", 1),
		"no colon":          strings.Replace(realContact, "0x55d1c3f0a2b0:", "0x55d1c3f0a2b0", 1),
		"stream zero":       strings.Replace(realContact, "55d1c3f0a2b0", "0", 1),
		"stream no number":  strings.Replace(realContact, "55d1c3f0a2b0", "xyz", 1),
		"stream too long":   strings.Replace(realContact, "55d1c3f0a2b0", "10000000000000000", 1),
		"stream negative":   strings.Replace(realContact, "0x55d1c3f0a2b0", "-1", 1),
		"not base64":        realContact + "?",
		"cut base64":        realContact[:len(realContact)-3],
		"more behind it":    realContact + "\nmore",
		"list of nothing":   realContact[:strings.IndexByte(realContact, ':')+1],
		"big-endian writer": "#ADIOS2-SST v0\n0x1:AQAAAA==",
	} {
		if c, err := parseContactFile([]byte(text)); !errors.Is(err, ErrContact) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	for n := range realContact {
		if c, err := parseContactFile([]byte(realContact[:n])); err == nil && n < strings.IndexByte(realContact, ':')+9 {
			t.Errorf("cut to %q it is accepted: %+v", realContact[:n], c)
		}
	}
}

func TestContactPath(t *testing.T) {
	for _, c := range []struct{ name, want string }{{"a", "a.sst"}, {"a.sst", "a.sst"}, {"d/a.bp", "d/a.bp.sst"}, {"a.sst.sst", "a.sst.sst"}} {
		if got := contactPath(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWriteContact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sst")
	first, second := ourContact(t, 1), ourContact(t, 2)
	for _, c := range []contactFile{first, second} { // the second replaces the first
		if err := writeContact(path, c, defaultContactMode); err != nil {
			t.Fatal(err)
		}
		got, err := readContact(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.bytes(), got.bytes()); d != "" {
			t.Error(d)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := writeContact(path, second, 0o644); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1 {
		t.Errorf("%v is there, %v", list, err)
	}
}

// TestRemoveContact leaves the file of another writer alone.
func TestRemoveContact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sst")
	ours, theirs := ourContact(t, 1), ourContact(t, 2)
	if err := removeContact(path, ours); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	if err := writeContact(path, theirs, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeContact(path, ours); err != nil {
		t.Error(err)
	}
	if _, err := readContact(path); err != nil {
		t.Errorf("another writer's file is gone: %v", err)
	}
	if err := removeContact(path, theirs); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// TestWriteContactFails leaves nothing behind.
func TestWriteContactFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sst")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeContact(path, ourContact(t, 1), 0o600); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("in place of a folder: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v is there, %v", list, err)
	}
}

func TestReadContactBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sst")
	if err := os.WriteFile(path, append([]byte(contactMagic), bytes.Repeat([]byte("x"), 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readContact(path); !errors.Is(err, ErrContact) {
		t.Error(err)
	}
}

func TestSimilarStreams(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"alpha", "beta", "heat2d", "gamma", "delta", "omega", "psi"} {
		if err := os.WriteFile(filepath.Join(dir, name+contactSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := similarStreams(filepath.Join(dir, "heat2"+contactSuffix))
	if len(got) != 5 || got[0] != "heat2d" {
		t.Errorf("%v", got)
	}
	if got := similarStreams(filepath.Join(dir, "none", "x")); got != nil {
		t.Errorf("%v in a folder that is not", got)
	}
}

func FuzzContactFile(f *testing.F) {
	f.Add([]byte(realContact))
	f.Add(ourContact(f, 7).bytes())
	f.Add([]byte(contactMagic + "0x1:AAAAAA=="))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseContactFile(b)
		if err != nil {
			if !errors.Is(err, ErrContact) {
				t.Errorf("%v is no ErrContact", err)
			}
			return
		}
		if c.contact.String() == "" {
			t.Fatal("a list that was read cannot be written")
		}
		again, err := parseContactFile(c.bytes())
		if err != nil || again.stream != c.stream {
			t.Fatalf("%q is read and written as %q: %v", b, c.bytes(), err)
		}
	})
}

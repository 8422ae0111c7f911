// Package bpfixture is test support: small BP5 datasets written by real ADIOS2, and the text that real ADIOS2 prints for
// them. It is the one copy that the tests of step, bp, sst and the command line share. What is in each dataset, and how it
// was made, is in testdata/README.md.
//
// It is not a reader: it unpacks archives, nothing more. No package outside tests imports it.
// Everything is embedded and read-only, so all functions may be called from concurrent tests.
package bpfixture

import (
	"archive/tar"
	"bytes"
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/*.tar testdata/*.txt
var files embed.FS

// blocksName is the one archive that is not a dataset: the blobs of an SST writer.
const blocksName = "main-sst-blocks"

// Names returns the names of all datasets in ascending order, such as "v2.10.2-types". The names begin with the version
// of ADIOS2 that wrote the dataset. The SST blobs (see Blocks) are not among them.
func Names() []string {
	tars, err := fs.Glob(files, "testdata/*.tar")
	if err != nil {
		panic(err) // the pattern is constant
	}
	var names []string
	for _, p := range tars {
		if n := strings.TrimSuffix(path.Base(p), ".tar"); n != blocksName {
			names = append(names, n)
		}
	}
	slices.Sort(names) // Glob promises no order
	return names
}

// Files returns the files of dataset name in memory, by base name: "md.idx", "md.0", "mmd.0", "data.0" and so on. The
// caller owns the map and the slices.
func Files(t testing.TB, name string) map[string][]byte {
	t.Helper()
	out := make(map[string][]byte)
	walk(t, name, func(h *tar.Header, body []byte) {
		if h.Typeflag == tar.TypeReg {
			out[path.Base(h.Name)] = body
		}
	})
	return out
}

// Extract unpacks dataset name into a new temporary folder and returns the path of the dataset, which ends in
// "name.bp". The folder is writable and goes away with the test.
func Extract(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	unpack(t, name, dir)
	return filepath.Join(dir, name+".bp")
}

// Expected returns what ADIOS2 itself prints for dataset name; the form is described in testdata/README.md.
func Expected(t testing.TB, name string) string {
	t.Helper()
	return text(t, name+".expected.txt")
}

// Blocks unpacks the blobs that an ADIOS2 SST writer of two ranks made in three steps, and returns the folder. In it
// are two folders: "main-sst-blocks" (SST's default encoding of attributes, no statistics) and "main-sst-blocks-onetime".
// Each holds md.STEP.RANK, attr.STEP.RANK, data.STEP.RANK and mmd.RANK.
func Blocks(t testing.TB) string {
	t.Helper()
	dir := t.TempDir() // goes away with the test
	unpack(t, blocksName, dir)
	return dir
}

// BlocksDecoded returns the decoded text of the folder "main-sst-blocks" of Blocks.
func BlocksDecoded(t testing.TB) string {
	t.Helper()
	return text(t, blocksName+".decoded.txt")
}

// text returns an embedded file that is read as it is.
func text(t testing.TB, name string) string {
	t.Helper()
	b, err := files.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatalf("bpfixture: %v", err)
	}
	return string(b)
}

// unpack writes an archive into dir. The archives are ours, but a path that leaves the folder would still be a mistake
// worth a failed test.
func unpack(t testing.TB, name, dir string) {
	t.Helper()
	walk(t, name, func(h *tar.Header, body []byte) {
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("bpfixture: %s: path %q leaves the folder", name, h.Name)
		}
		p := filepath.Join(dir, filepath.FromSlash(h.Name)) // tar has slashes everywhere
		var err error
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(p, 0o755)
		case tar.TypeReg:
			err = errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, body, 0o644))
		}
		if err != nil {
			t.Fatalf("bpfixture: %s: %v", name, err)
		}
	})
}

// walk calls visit for each entry of an archive, with its whole content: the datasets are small.
func walk(t testing.TB, name string, visit func(h *tar.Header, body []byte)) {
	t.Helper()
	// Read each time: tests change what they get, and must not see each other's changes.
	raw, err := files.ReadFile("testdata/" + name + ".tar")
	if err != nil {
		t.Fatalf("bpfixture: no dataset %q: %v", name, err)
	}
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("bpfixture: %s: %v", name, err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("bpfixture: %s: %s: %v", name, h.Name, err)
		}
		visit(h, body)
	}
}

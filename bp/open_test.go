package bp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// put makes a folder with one file of the given content and returns the folder.
func put(t *testing.T, name, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.bp")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// patched returns a fixture on disk with one byte of its index changed.
func patched(t *testing.T, at int, to byte) string {
	t.Helper()
	p := bpfixture.Extract(t, "main-nostats")
	idx := filepath.Join(p, indexName)
	b, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	b[at] = to
	if err := os.WriteFile(idx, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// F91: what is not a whole BP5 dataset is told apart, by error and by text.
func TestOpenF91(t *testing.T) {
	text := put(t, "hello.txt", "hello")
	stream := filepath.Join(t.TempDir(), "sim.sst")
	if err := os.WriteFile(stream, []byte("#ADIOS2-SST v0\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s3 := patched(t, 40, 'n')
	if err := os.WriteFile(filepath.Join(s3, objectStore), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	header := strings.Repeat("x", 10)
	for _, c := range []struct {
		name, path string
		want       error
		text       string
	}{
		{"missing", filepath.Join(t.TempDir(), "no.bp"), fs.ErrNotExist, "no.bp"},
		{"folder without index", text, ErrNotBP, "not a BP5 file"},
		{"text file", filepath.Join(text, "hello.txt"), ErrNotBP, "a BP5 dataset is a folder"},
		{"empty file", empty, ErrNotBP, "an empty file"},
		{"contact file", stream, ErrStream, "stream contact file"},
		{"name of a stream", strings.TrimSuffix(stream, ".sst"), ErrStream, "sim.sst"},
		{"empty index", put(t, indexName, ""), ErrEmpty, "empty"},
		{"short header", put(t, indexName, "ADIOS-BP v2.:.2 Ind"), ErrEmpty, "empty"},
		{"foreign index", put(t, indexName, header), ErrNotBP, "not a BP5 file"},
		{"contact file as index", put(t, indexName, "#ADIOS2-SST v0"), ErrNotBP, "stream"},
		{"BP4", patched(t, 37, 4), ErrVersion, "BP version 4"},
		{"BP5.1", patched(t, 38, 1), ErrVersion, "5.1"},
		{"big-endian", patched(t, 36, 1), ErrByteOrder, "big-endian"},
		{"object store", s3, ErrObjectStore, "object storage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Open(t.Context(), c.path, Config{})
			if err == nil {
				r.Close()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q does not say %q", err, c.text)
			}
		})
	}
}

// TestF95FailedOpensLeaveNoFiles: failing to open leaves no descriptor behind.
func TestF95FailedOpensLeaveNoFiles(t *testing.T) {
	p := put(t, indexName, "ADIOS-BP v2.:.2 Ind")
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc/self/fd")
		}
		return len(e)
	}
	before := count()
	for range 200 {
		if _, err := Open(t.Context(), p, Config{}); !errors.Is(err, ErrEmpty) {
			t.Fatal(err)
		}
	}
	if after := count(); after > before+5 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestClosed(t *testing.T) {
	m := fixture(t, "main-append-3then2ranks")
	r := mustOpen(t, m, Config{})
	st := mustStep(t, r, 0)
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(t.Context(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Step: %v", err)
	}
	if _, err := r.Refresh(); !errors.Is(err, ErrClosed) {
		t.Errorf("Refresh: %v", err)
	}
	v, _ := st.Variable("x")
	if _, err := v.Any(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if r.Info().Steps != 4 {
		t.Errorf("Info after Close: %+v", r.Info())
	}
}

func TestNoSuchStep(t *testing.T) {
	r := mustOpen(t, fixture(t, "main-nostats"), Config{})
	for _, n := range []int{-1, 2, 1 << 40} {
		if _, err := r.Step(t.Context(), n); !errors.Is(err, ErrNoStep) {
			t.Errorf("step %d: %v", n, err)
		}
	}
}

package blosc

import (
	"bytes"
	"compress/zlib"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func zlibStream(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zlib.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstdStream(t *testing.T, b []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// A stream must make what its place takes: no more, no less.
func TestCodecSizes(t *testing.T) {
	want := sample("text", 500)
	for name, tc := range map[string]struct {
		c   codec
		src []byte
	}{
		"zlib":                {codecZlib, zlibStream(t, want)},
		"zstd":                {codecZstd, zstdStream(t, want)},
		"zstd without length": {codecZstd, zstdStream(t, want, zstd.WithSingleSegment(false))},
	} {
		dst := make([]byte, len(want))
		if err := tc.c.decode(dst, tc.src); err != nil || !bytes.Equal(dst, want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range []int{0, 1, 499, 501, 1000} {
			buf := bytes.Repeat([]byte{0xaa}, n+64)
			if err := tc.c.decode(buf[:n:n], tc.src); err == nil {
				t.Errorf("%s: no error for %d bytes", name, n)
			}
			if !bytes.Equal(buf[n:], bytes.Repeat([]byte{0xaa}, 64)) {
				t.Errorf("%s: wrote behind %d bytes", name, n)
			}
		}
	}
}

// A few bytes that promise very many must not cost memory.
func TestZstdBomb(t *testing.T) {
	src := zstdStream(t, make([]byte, 64<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := codecZstd.decode(make([]byte, 1000), src); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 16<<20 {
		t.Errorf("%d bytes allocated", allocated)
	}
}

func TestZlibChecksum(t *testing.T) {
	src := zlibStream(t, []byte("hello"))
	src[len(src)-1] ^= 1
	if err := codecZlib.decode(make([]byte, 5), src); err == nil {
		t.Error("no error")
	}
	if err := codecZlib.decode(make([]byte, 5), src[:len(src)-1]); err == nil {
		t.Error("cut: no error")
	}
}

package blosc

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/operator"
)

//go:embed testdata/chunks.tar.gz
var archive []byte

// fixture is a chunk that C-Blosc2 made, and what is in it. The name says how; see testdata/README.md.
type fixture struct {
	name  string
	chunk []byte
	want  []byte
}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var out []fixture
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		chunk, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		part := strings.Split(h.Name, "-")
		n, err := strconv.Atoi(part[5])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fixture{h.Name, chunk, sample(part[4], n)})
	}
}

// find returns the fixture of that name.
func find(t testing.TB, name string) fixture {
	t.Helper()
	for _, f := range fixtures(t) {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no fixture %q", name)
	return fixture{}
}

// sample makes the data that testdata/make.py compressed.
func sample(kind string, n int) (b []byte) {
	switch kind {
	case "ramp":
		for i := range n/8 + 1 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)+0.25))
		}
	case "count":
		for i := range n/4 + 1 {
			b = binary.LittleEndian.AppendUint32(b, uint32(1000000+3*i))
		}
	case "text":
		b = bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog. "), n/45+1)
	case "random":
		b = random(n)
	case "mixed":
		b = append(random(n/2), bytes.Repeat([]byte{7}, n/4)...)
		b = append(b, make([]byte, n)...)
	case "far":
		b = bytes.Repeat(random(9000), n/9000+1)
	case "zeros":
		b = make([]byte, n)
	}
	return b[:n]
}

func random(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// wrap puts chunks that make size bytes together into a block, as ADIOS2 does.
func wrap(size int, chunks ...[]byte) []byte {
	b := operator.AppendFrame(nil, operator.Blosc, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	b = append(b, 2, 17, 1)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(chunks)))
	return append(b, bytes.Join(chunks, nil)...)
}

// decode decodes a block of n bytes.
func decode(block []byte, n int) ([]byte, error) {
	dst := bytes.Repeat([]byte{0xee}, n)
	err := operator.Decode(dst, block, operator.Block{})
	return dst, err
}

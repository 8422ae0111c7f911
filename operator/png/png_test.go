package png

import (
	"bytes"
	"embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/operator"
)

//go:embed testdata/*.block
var testdata embed.FS

// stored is a block that ADIOS2 wrote; see testdata/README.md.
type stored struct {
	count []uint64
	want  []byte
}

var blocks = map[string]stored{
	"gray":     {[]uint64{6, 5, 1}, threes(30)},
	"ga":       {[]uint64{6, 5, 2}, threes(60)},
	"rgb":      {[]uint64{6, 5, 3}, threes(90)},
	"rgba":     {[]uint64{6, 5, 4}, threes(120)},
	"gray2d":   {[]uint64{6, 5}, threes(30)},
	"rgba2d32": {[]uint64{6, 5}, words(30)},
}

func threes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(3 * i)
	}
	return b
}

func words(n int) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(1234567*i))
	}
	return b
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := testdata.ReadFile("testdata/" + name + ".block")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStoredBlocks(t *testing.T) {
	for name, s := range blocks {
		got := make([]byte, len(s.want))
		if err := operator.Decode(got, load(t, name), operator.Block{Count: s.count}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got, s.want) {
			t.Errorf("%s: got %x\nwant %x", name, got, s.want)
		}
	}
}

// The image of the dataset v2.10.2-png: {6,5,4}, element i is 3·i modulo 256.
func TestFixtureDataset(t *testing.T) {
	data := bpfixture.Files(t, "v2.10.2-png")["data.0"]
	block := data[:binary.LittleEndian.Uint64(data[4:])]
	got := make([]byte, 120)
	if err := operator.Decode(got, block, operator.Block{Count: []uint64{6, 5, 4}, ElemSize: 1, Type: 5}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, threes(120)) {
		t.Errorf("got %x", got)
	}
}

func TestTruncated(t *testing.T) {
	for name, s := range blocks {
		block := load(t, name)
		for n := range block {
			b := bytes.Clone(block[:n])
			check := func(what string) {
				if err := operator.Decode(make([]byte, len(s.want)), b, operator.Block{Count: s.count}); !errors.Is(err, operator.ErrCorrupt) {
					t.Fatalf("%s: prefix %d%s: %v", name, n, what, err)
				}
			}
			check("")
			if n >= 12 && n < len(block)-12 { // the last chunk, IEND, adds nothing to the image
				binary.LittleEndian.PutUint64(b[4:], uint64(n))
				check(" with its length put right")
			}
		}
	}
}

// wrap puts a PNG file into a block.
func wrap(file []byte) []byte {
	b := operator.AppendFrame(nil, operator.PNG, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(headerSize+len(file)))
	return append(append(b, 1, 6, 47), file...)
}

func encode(t testing.TB, m image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		t.Fatal(err)
	}
	return wrap(buf.Bytes())
}

// Colours under zero or low alpha must come back as they were stored.
func TestAlphaDoesNotTouchColours(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 64, 4))
	for i := range m.Pix {
		m.Pix[i] = byte(i*7 + i/256)
	}
	got := make([]byte, len(m.Pix))
	if err := operator.Decode(got, encode(t, m), operator.Block{Count: []uint64{4, 64, 4}}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, m.Pix) {
		t.Error("other bytes")
	}
}

func TestUnsupportedImages(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 5, 6), color.Palette{color.Black, color.White})
	fourBit := encode(t, image.NewGray(image.Rect(0, 0, 5, 6)))
	fourBit[headerSize+bitDepthAt] = 4
	header := fourBit[headerSize+12 : headerSize+12+4+13]
	binary.BigEndian.PutUint32(fourBit[headerSize+12+4+13:], crc32.ChecksumIEEE(header))
	version2 := load(t, "gray")
	version2[1] = 2
	for name, block := range map[string][]byte{
		"palette":          encode(t, palette),
		"16 bits":          load(t, "gray16"),
		"4 bits":           fourBit,
		"layout version 2": version2,
	} {
		if err := operator.Decode(make([]byte, 30), block, operator.Block{}); !errors.Is(err, operator.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	rgba := func() []byte { return load(t, "rgba") }
	length := rgba()
	length[4]--
	huge := rgba()
	binary.BigEndian.PutUint32(huge[headerSize+16:], 0x7fffffff)
	for _, tc := range []struct {
		name  string
		block []byte
		size  int
		count []uint64
	}{
		{"length", length, 120, nil},
		{"huge image", huge, 120, nil},
		{"dst too small", rgba(), 119, nil},
		{"dst too large", rgba(), 240, nil},
		{"empty dst", rgba(), 0, nil},
		{"three channels wanted", rgba(), 90, []uint64{6, 5, 3}},
		{"two channels wanted", rgba(), 60, []uint64{6, 5, 2}},
		{"sides swapped", rgba(), 120, []uint64{5, 6, 4}},
		{"no file", wrap(nil), 120, nil},
		{"other file", wrap([]byte("GIF89a")), 120, nil},
	} {
		if err := operator.Decode(make([]byte, tc.size), tc.block, operator.Block{Count: tc.count}); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// A header that promises a huge image must not cost memory.
func TestHugeImageIsRefusedBeforeAllocating(t *testing.T) {
	block := encode(t, image.NewGray(image.Rect(0, 0, 1, 1)))
	ihdr := block[headerSize+12 : headerSize+12+4+13]
	binary.BigEndian.PutUint32(ihdr[4:], 1<<30)
	binary.BigEndian.PutUint32(ihdr[8:], 1<<30)
	binary.BigEndian.PutUint32(block[headerSize+12+4+13:], crc32.ChecksumIEEE(ihdr))
	if err := operator.Decode(make([]byte, 1), block, operator.Block{}); !errors.Is(err, operator.ErrCorrupt) {
		t.Error(err)
	}
}

func TestIsRegistered(t *testing.T) {
	if d, ok := operator.Lookup(operator.PNG); !ok || d.Name() != "png" {
		t.Errorf("Lookup = %v, %v", d, ok)
	}
}

func FuzzDecode(f *testing.F) {
	for name, s := range blocks {
		f.Add(load(f, name), len(s.want))
	}
	f.Add(load(f, "gray16"), 60)
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		err := decoder{}.Decode(make([]byte, uint16(n)), block, operator.Block{})
		if err != nil && !errors.Is(err, operator.ErrCorrupt) && !errors.Is(err, operator.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}

package blosc

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/operator"
)

func TestBloscLZLiteral(t *testing.T) {
	far := random(8200) // literals, in runs of 32
	var farSrc []byte
	for i := 0; i < len(far); i += 32 {
		run := far[i:min(i+32, len(far))]
		farSrc = append(append(farSrc, byte(len(run)-1)), run...)
	}
	for name, tc := range map[string]struct{ src, want string }{
		"empty":                     {"", ""},
		"one byte":                  {"\x00a", "a"},
		"upper bits of first byte":  {"\x22abc", "abc"},
		"short match":               {"\x02abc\x20\x02", "abcabc"},
		"overlapping match":         {"\x00a\xc0\x00", "aaaaaaaaa"},                              // 6+2 from 1 back
		"long match":                {"\x01ab\xe0\x05\x01", "ab" + strings.Repeat("ab", 7)},      // 9+5
		"very long match":           {"\x00a\xe0\xff\xff\x02\x00", strings.Repeat("a", 1+9+512)}, // 9+255+255+2
		"literals after a match":    {"\x00a\x20\x00\x01xy", "aaaaxy"},
		"distance 257":              {string(farSrc[:33*9]) + "\x21\x00", string(far[:288]) + string(far[31:34])},
		"far match, 8192 back":      {string(farSrc) + "\x3f\xff\x00\x00", string(far) + string(far[8:11])},
		"far match, 8200 back":      {string(farSrc) + "\x3f\xff\x00\x08", string(far) + string(far[:3])},
		"far match with length":     {string(farSrc) + "\xff\x01\xff\x00\x08", string(far) + string(far[:10])},
		"last near distance (8191)": {string(farSrc) + "\x3f\xfe", string(far) + string(far[9:12])},
	} {
		dst := make([]byte, len(tc.want))
		n, err := decodeBloscLZ(dst, []byte(tc.src))
		if err != nil || n != len(tc.want) || string(dst) != tc.want {
			t.Errorf("%s: n = %d of %d, err = %v", name, n, len(tc.want), err)
		}
	}
}

func TestBloscLZRefuses(t *testing.T) {
	for name, src := range map[string]string{
		"literals cut":              "\x02ab",
		"literals over dst":         "\x1f" + strings.Repeat("a", 32),
		"match before the start":    "\x00a\x20\x01",
		"match over dst":            "\x00a\xe0\x50\x00",
		"no distance":               "\x00a\x20",
		"no length":                 "\x00a\xe0",
		"length without end":        "\x00a\xe0\xff",
		"long match, no distance":   "\x00a\xe0\x00",
		"far match cut":             "\x00a\x3f\xff\x00",
		"far match before start":    "\x00a\x3f\xff\xff\xff",
		"length far beyond the end": "\x00a\xe0" + strings.Repeat("\xff", 100) + "\x00\x00",
	} {
		if n, err := decodeBloscLZ(make([]byte, 16), []byte(src)); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: n = %d, err = %v", name, n, err)
		}
	}
}

func TestCopyMatch(t *testing.T) {
	for dist := 1; dist < 12; dist++ {
		for n := range 40 {
			got := append(random(12), make([]byte, 40)...)
			want := bytes.Clone(got)
			for i := range n {
				want[12+i] = want[12+i-dist]
			}
			copyMatch(got, 12, n, dist)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes from %d back: %x", n, dist, got)
			}
		}
	}
}

// Whatever comes in, the decoder stays within dst and says how much it made.
func FuzzBloscLZ(f *testing.F) {
	f.Add([]byte("\x02abc\x20\x02"))
	f.Add([]byte("\x00a\xe0\xff\xff\x02\x00"))
	f.Add([]byte("\x00a\x3f\xff\x00\x08"))
	f.Fuzz(func(t *testing.T, src []byte) {
		buf := bytes.Repeat([]byte{0xaa}, 300)
		n, err := decodeBloscLZ(buf[:256], src)
		if n < 0 || n > 256 || !bytes.Equal(buf[256:], bytes.Repeat([]byte{0xaa}, 44)) {
			t.Fatalf("n = %d, err = %v", n, err)
		}
		if err == nil && !bytes.Equal(buf[n:256], bytes.Repeat([]byte{0xaa}, 256-n)) {
			t.Fatalf("wrote behind %d", n)
		}
	})
}

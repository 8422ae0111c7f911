package native

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric"
)

var (
	sample     = Contact{Address: "shm://ab?inc=7", Key: 0x1234abcd, Nonce: [nonceSize]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}}
	sampleText = "1 shm://ab?inc=7 000000001234abcd 000102030405060708090a0b0c0d0eff"
)

func TestContact(t *testing.T) {
	if got := string(sample.Append([]byte("x"))); got != "x"+sampleText {
		t.Errorf("appended %q", got)
	}
	if got, err := ParseContact(sampleText); err != nil || got != sample {
		t.Errorf("parsed %+v, %v", got, err)
	}
}

// Every beginning of a contact is none, and neither is one with something behind it.
func TestContactTruncated(t *testing.T) {
	for i := range sampleText {
		if c, err := ParseContact(sampleText[:i]); !errors.Is(err, fabric.ErrInvalid) {
			t.Errorf("%q: %+v, %v", sampleText[:i], c, err)
		}
	}
}

func TestContactRefuses(t *testing.T) {
	tail := " 000000001234abcd 000102030405060708090a0b0c0d0eff"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "offset 0: version"},
		{"other version", "2 " + sampleText[2:], `offset 0: version "2"`},
		{"long version", strings.Repeat("1", 1000) + " x", "offset 0: version"},
		{"no address", "1 " + tail, "offset 2: an address of 0 bytes"},
		{"long address", "1 " + strings.Repeat("a", maxAddress+1) + tail, "offset 2: an address of 4097 bytes"},
		{"byte of the address", "1 shm://a\nb" + tail, "offset 9: a byte 0xa"},
		{"rune of the address", "1 shm://é" + tail, "offset 8: a byte 0xc3"},
		{"short key", "1 a 123 000102030405060708090a0b0c0d0eff", "offset 4: 36 bytes"},
		{"digit of the key", "1 a 00000000123_abcd 000102030405060708090a0b0c0d0eff", "offset 15: a byte 0x5f"},
		{"upper case", "1 a 000000001234ABCD 000102030405060708090a0b0c0d0eff", "offset 16: a byte 0x41"},
		{"digit of the nonce", "1 a 000000001234abcd 000102030405060708090a0b0c0d0efg", "offset 52: a byte 0x67"},
		{"behind", sampleText + " ", "offset 17: 50 bytes"},
		{"two spaces", "1  shm://ab?inc=7" + tail, "offset 2: an address of 0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseContact(c.text)
			if !errors.Is(err, fabric.ErrInvalid) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
				t.Errorf("%+v, %v; want %q", got, err, c.want)
			}
		})
	}
}

func FuzzContact(f *testing.F) {
	f.Add(sampleText)
	f.Add("1 a 000000001234abcd 000102030405060708090a0b0c0d0efg")
	f.Add("2 a b c")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseContact(text)
		if err != nil {
			if !errors.Is(err, fabric.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		if again := string(c.Append(nil)); again != text {
			t.Errorf("%q became %q", text, again)
		}
	})
}

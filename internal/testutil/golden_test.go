package testutil

import (
	"os"
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		name, want, got string
		says            []string
	}{
		{"equal", "a\x00b", "a\x00b", nil},
		{"text", "one\ntwo\n", "one\n2\n", []string{`"two\n"`, `"2\n"`}},
		{"binary", "\x00abc", "\x00abX", []string{"byte 3 (0x3) of 4 wanted and 4 gotten", "- 63", "+ 58"}},
		{"shorter", "\x00abc", "\x00", []string{"byte 1", "- 61 62 63"}},
		{"longer", "\xff", "\xff\x01", []string{"byte 1", "+ 01"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := difference([]byte(c.want), []byte(c.got))
			if (d == "") != (c.says == nil) {
				t.Fatalf("got %q", d)
			}
			for _, s := range c.says {
				if !strings.Contains(d, s) {
					t.Errorf("%q does not say %q", d, s)
				}
			}
		})
	}
}

func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	f := &fakeTB{}
	if f.run(func() { Golden(f, "sub/x.txt", []byte("v1\n")) }) {
		t.Error("a missing file is no failure")
	}
	*update = true
	Golden(t, "sub/x.txt", []byte("v1\n"))
	*update = false
	if b, err := os.ReadFile("testdata/sub/x.txt"); err != nil || string(b) != "v1\n" {
		t.Fatalf("-update wrote %q, %v", b, err)
	}
	Golden(t, "sub/x.txt", []byte("v1\n"))
	f = &fakeTB{}
	Golden(f, "sub/x.txt", []byte("v2\n"))
	if !f.failed || !strings.Contains(f.log.String(), "v2") {
		t.Errorf("a difference is no failure; log %q", f.log.String())
	}
}

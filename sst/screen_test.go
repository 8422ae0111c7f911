package sst

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// What is on the screen of a writer.
const realScreen = "The next line has the contact information of stream \"s\".\n\t0x55d1c3f0a2b0:AAIBAJTJ8o0BwQAAATkCmAEAAH9JOEt3AwAAAAMAbG8AAAAA\n"

func TestReadScreen(t *testing.T) {
	want, err := parseContactFile([]byte(realContact))
	if err != nil {
		t.Fatal(err)
	}
	line := want.line()
	for what, text := range map[string]string{
		"the line":                line + "\n",
		"with a tab":              "\t" + line + "\n",
		"with blanks":             "  " + line + " \r\n",
		"without its end":         line,
		"after empty lines":       "\n\n \n" + line + "\n",
		"all that was printed":    realScreen,
		"a contact file":          realContact,
		"after somebody's typing": "what?\nno: that\n" + line + "\n",
	} {
		got, err := readScreen(strings.NewReader(text))
		if d := cmp.Diff(want.line(), got.line()); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", what, err, d)
		}
	}
	for what, text := range map[string]string{
		"nothing": "", "empty lines": "\n\n", "no contact": "hello\n", "cut": line[:len(line)-3], "no stream": "0x0" + line[strings.IndexByte(line, ':'):],
		"endless": strings.Repeat("x", 2*contactLimit), "endless lines": strings.Repeat("\n", 2*contactLimit),
	} {
		if c, err := readScreen(strings.NewReader(text)); !errors.Is(err, ErrContact) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	broken := errors.New("broken")
	if _, err := readScreen(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a broken input: %v", err)
	}
}

// What lies behind the line is somebody else's.
func TestReadScreenTakesNoMore(t *testing.T) {
	in := strings.NewReader(realScreen + "3.14\n")
	if _, err := readScreen(in); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if d := cmp.Diff("3.14\n", string(rest)); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestPrintContact(t *testing.T) {
	var b bytes.Buffer
	c := ourContact(t, 7)
	if err := printContact(&b, "s", c); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 3 || lines[1] != "\t"+c.line() || lines[2] != "" {
		t.Errorf("%q", lines)
	}
	got, err := readScreen(&b)
	if d := cmp.Diff(c.line(), got.line()); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	r, w := io.Pipe()
	r.Close()
	if err := printContact(w, "s", c); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a screen that is gone: %v", err)
	}
}

// FuzzReadScreen must not panic, and read no more than is sensible.
func FuzzReadScreen(f *testing.F) {
	f.Add(realScreen)
	f.Add(realContact)
	f.Add("")
	f.Add("\t0x1:\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readScreen(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := readScreen(strings.NewReader(c.line()))
		if d := cmp.Diff(c.line(), again.line()); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	})
}

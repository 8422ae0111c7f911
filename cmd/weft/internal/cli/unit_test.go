package cli

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/step"
)

// Chunks of any size cover a box once, in row-major order.
func TestCutCoversBox(t *testing.T) {
	const seed = 3
	rnd := rand.New(rand.NewPCG(seed, seed))
	for range 500 {
		dims := 1 + rnd.IntN(4)
		box := step.Box{Start: make([]uint64, dims), Count: make([]uint64, dims)}
		for d := range dims {
			box.Start[d], box.Count[d] = rnd.Uint64N(5), 1+rnd.Uint64N(5)
		}
		d := rnd.IntN(dims)
		inner := 1
		for _, c := range box.Count[d+1:] {
			inner *= int(c)
		}
		var got []uint64
		err := cut(box, d, 1+rnd.Uint64N(3), inner, func(sub step.Box, n int) error {
			if m, err := sub.Elements(); err != nil || m != n {
				t.Fatalf("seed %d: %v: %d elements, said %d", seed, sub, m, n)
			}
			got = append(got, indices(sub, box)...)
			return nil
		})
		if total, _ := box.Elements(); err != nil || len(got) != total {
			t.Fatalf("seed %d: %v: %d elements, want %d", seed, box, len(got), total)
		}
		for i, v := range got {
			if v != uint64(i) {
				t.Fatalf("seed %d: %v: element %d came at %d", seed, box, v, i)
			}
		}
	}
}

// indices lists the positions of sub's elements in box, in row-major order.
func indices(sub, box step.Box) []uint64 {
	list := []uint64{0}
	for d := range sub.Count {
		var next []uint64
		for _, base := range list {
			for i := range sub.Count[d] {
				next = append(next, base*box.Count[d]+sub.Start[d]-box.Start[d]+i)
			}
		}
		list = next
	}
	return list
}

func TestSlice(t *testing.T) {
	shape := []uint64{4, 6}
	for _, c := range []struct {
		start, count string
		want         string // of the box; empty: an error
	}{
		{"", "", "{0, 0} {4, 6}"},
		{"1,2", "", "{1, 2} {3, 4}"},
		{"", "2,-1", "{0, 0} {2, 6}"},
		{"-1,-2", "1,-1", "{3, 4} {1, 2}"},
		{"4,0", "0,6", "{4, 0} {0, 6}"},
		{"5,0", "", ""},
		{"-5,0", "", ""},
		{"0,0", "5,1", ""},
		{"0", "1", ""},
		{"9223372036854775807,0", "", ""},
	} {
		s, err := parseSlice(c.start, c.count)
		if err != nil {
			t.Fatal(err)
		}
		box, err := s.box(shape)
		if (err == nil) != (c.want != "") || err == nil && box.String() != c.want {
			t.Errorf("%q %q: %v %v, want %q", c.start, c.count, box, err, c.want)
		}
	}
	if _, err := (slice{start: []int64{0}}).box([]uint64{1 << 63}); !errors.Is(err, step.ErrSelection) {
		t.Errorf("a dimension of 2^63: %v", err)
	}
}

func TestShortNumbersAreThoseOfBpls(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 99: "99", 0.25: "0.25", 1e6: "1e+06", 123456: "123456", 1234567: "1.23457e+06", math.MaxFloat32: "3.40282e+38", 1e-5: "1e-05", -0.1: "-0.1", math.Inf(1): "+Inf",
	} {
		if got := string(appendG(nil, v)); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestChars(t *testing.T) {
	if got := string(join(nil, []step.Char{'a', ' ', 0, 0x80}, textStyle, ",")); got != `a, ,\0,\200` {
		t.Errorf("%q", got)
	}
}

// Names and strings of others cannot do anything to a terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"T": "T", "a/b c": "a/b c", "été ░": "été ░", "\x1b[2J": `\x1b[2J`, "a\nb\x00": `a\nb\x00`, "\xff": `\xff`, "\ufffd": "\ufffd", "\u202e": `\u202e`, "\u0085": `\u0085`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if got := message(errors.Join(errors.New("bp: a"), errors.New("b\x1b"))); got != `a; b\x1b` {
		t.Errorf("message: %s", got)
	}
}

// The solver keeps the tolerance that the demo states, and the tolerance is no
// wider than it needs to be.
func TestHeatKeepsItsTolerance(t *testing.T) {
	for _, n := range []int{8, 33, 64, 129} {
		s := newHeat(n)
		worst := 0.0
		for s.t < 0.2 {
			s.advance(max(1, n*n/256))
			worst = max(worst, deviation(s.u, n, s.t))
		}
		if tol := tolerance(n); worst > tol || worst < tol/4 {
			t.Errorf("%d points: deviation %.3g, tolerance %.3g", n, worst, tol)
		}
	}
}

// What would go wrong in a stream is seen.
func TestDeviationSeesErrors(t *testing.T) {
	const n = 64
	s := newHeat(n)
	s.advance(sweeps)
	tol := tolerance(n)
	old := append([]float64(nil), s.u...)
	s.advance(sweeps)
	if d := deviation(old, n, s.t); d <= tol {
		t.Errorf("an old step: %.3g", d)
	}
	swapped := append([]float64(nil), s.u...)
	copy(swapped[10*n:11*n], s.u[11*n:12*n])
	if d := deviation(swapped, n, s.t); d <= tol {
		t.Errorf("a row from another place: %.3g", d)
	}
	swapped[5] = math.NaN()
	if d := deviation(swapped, n, s.t); !math.IsNaN(d) {
		t.Errorf("a NaN: %.3g", d)
	}
}

func TestPicture(t *testing.T) {
	p := newPicture(newHeat(64).u, 64)
	for _, color := range []bool{false, true} {
		text := p.render(color)
		if n := strings.Count(text, "\n"); n != pictureHeight/2 {
			t.Errorf("colour %v: %d lines", color, n)
		}
		if color != strings.Contains(text, "\x1b") {
			t.Errorf("colour %v: %q", color, text)
		}
	}
	if !strings.Contains(p.render(false), "█") {
		t.Error("the hot middle does not show")
	}
	if got := (picture{Width: 9, Height: 9}).render(true); got != "" {
		t.Errorf("pixels are missing: %q", got)
	}
}

// The display draws on terminals only.
func TestDisplay(t *testing.T) {
	for _, width := range []int{0, 40, 80} {
		var out bytes.Buffer
		d := newDisplay(Env{Stdout: &out, Width: width}, demoOptions{steps: 2})
		for n := range uint64(2) {
			d.step(report{Step: n, Picture: newPicture(newHeat(16).u, 16)})
		}
		d.close()
		if width == 0 && out.Len() != 0 {
			t.Errorf("drawn without a terminal: %q", out.String())
		}
	}
	d := newDisplay(Env{Stdout: io.Discard, Width: 80}, demoOptions{steps: 5})
	d.step(report{})
	d.close() // before it is full
}

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out).With("stream", "s")
	log.Info("not shown")
	log.Warn("waiting", "for", 3*time.Second)
	log.WithGroup("g").LogAttrs(t.Context(), slog.LevelError, "bad")
	if want := "weft: waiting (stream s, for 3s)\nweft: bad (stream s)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestReportsOfABrokenChild(t *testing.T) {
	env, opt := Env{Stdout: io.Discard}, demoOptions{steps: 2, size: 8}
	for _, text := range []string{`{"Step":1}`, `{"Step":0}{"Step":0}`, `{"Step":0}{`, "nonsense"} {
		if _, err := watchDemo(env, opt, strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	for _, text := range []string{`{"Step":0}`, `{"Step":0}{"Step":1,"Deviation":1}`, `{"Step":0}{"Step":1,"Deviation":-1}`} {
		sum, err := watchDemo(env, opt, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := sum.print(0, newOutput(io.Discard), opt); err == nil {
			t.Errorf("%s: judged right", text)
		}
	}
}

// JSON on a terminal must not do anything to it either.
func TestJSONControlCharacters(t *testing.T) {
	const in = "a\x1b\u009b\u0085\x7f\"\\\n\u00a0\xff"
	const want = `"a\u001b\u009b\u0085\u007f\"\\\n` + "\u00a0\ufffd" + `"`
	if got := string(appendJSONString(nil, in)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

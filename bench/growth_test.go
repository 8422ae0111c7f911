package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestGrowthPlan(t *testing.T) {
	all := growthPlan(regexp.MustCompile(""))
	if len(all) != 3 || len(all[0].Points) != 5 || len(all[1].Points) != 5 || len(all[2].Points) != 4 {
		t.Errorf("%+v", all)
	}
	if some := growthPlan(regexp.MustCompile("^100+ variables$")); len(some) != 1 || len(some[0].Points) != 3 {
		t.Errorf("%+v", some)
	}
	for _, c := range all {
		for _, p := range c.Points {
			r := c.job(p.N).row
			if r.vars()*r.blocks()*r.local() != p.N || r.Bytes != itemBytes*p.N || r.Plane != native {
				t.Errorf("%d %ss: %+v", p.N, c.Item, r)
			}
		}
	}
}

// grown is a curve whose steps take such times, in us, at such numbers.
func grown(c curve, at []int, us ...float64) growthCurve {
	g := growthCurve{curve: c}
	for i, n := range at {
		var list []sample
		for round, factor := range []float64{1, 0.5, 2} {
			list = append(list, sample{Round: round, Steps: 1000, Seconds: us[i] * factor / 1e3})
		}
		g.Points = append(g.Points, point{n, list})
	}
	return g
}

func TestVerdict(t *testing.T) {
	decades := []int{1, 10, 100, 1000}
	for _, c := range []struct {
		us    []float64
		end   int // of the steepest part
		power float64
		want  string
	}{
		{[]float64{10, 100, 1000, 10000}, 1, 1, "linear or better: steepest from 1 to 10, as n^1.00"},
		{[]float64{50, 60, 100, 900}, 3, 0.95, "linear or better: steepest from 100 to 1000, as n^0.95"},
		{[]float64{50, 60, 720, 5000}, 2, 1.08, "linear or better: steepest from 10 to 100, as n^1.08"},
		{[]float64{50, 60, 100, 10000}, 3, 2, "worse than linear from 100 to 1000: as n^2.00"},
	} {
		g := grown(curves[0], decades, c.us...)
		if end, power := worst(g.Points); end != c.end || math.Abs(power-c.power) > 0.01 {
			t.Errorf("%v: %d, %v", c.us, end, power)
		}
		if got := g.verdict(); got != c.want {
			t.Errorf("%v: %s", c.us, got)
		}
	}
	// Fourfold steps are judged by the same power.
	if got := grown(curves[2], []int{1, 4, 16}, 10, 20, 100).verdict(); got != "worse than linear from 4 to 16: as n^1.16" {
		t.Error(got)
	}
	if got := grown(curves[0], []int{10}, 5).verdict(); got != "one point is no curve" {
		t.Error(got)
	}
}

func exampleGrowth() *growthReport {
	return &growthReport{
		Command: "go run ./bench -table growth -docs docs",
		Machine: machine{CPU: "Example CPU", CPUs: 2, Kernel: "6.1", Arch: "amd64", Go: "go1.26.8"},
		Seconds: 1.5,
		Loads:   []float64{0, 0.05, 0.01},
		Curves: []growthCurve{
			grown(curves[0], curves[0].At, 30, 45, 200, 2000, 25000),
			grown(curves[2], curves[2].At, 30, 50, 200, 2500),
			grown(curves[1], []int{1}, 30),
		},
	}
}

func TestGrowthPage(t *testing.T) {
	docs := filepath.Join(t.TempDir(), "docs")
	if err := writeGrowthDocs(docs, exampleGrowth()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, "performance.md", b)
	files, err := os.ReadDir(filepath.Join(docs, "performance"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(docs, "performance", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "us for a step") || !strings.Contains(string(b), "linear") {
			t.Errorf("%s has no labels", f.Name())
		}
		for d := xml.NewDecoder(bytes.NewReader(b)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
		}
	}
	var out strings.Builder
	if err := (config{}).writeGrowth(&out, exampleGrowth()); err != nil || strings.Contains(out.String(), ".svg") || !strings.Contains(out.String(), "n^1.10") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if b, err := json.Marshal(exampleGrowth()); err != nil || !strings.Contains(string(b), `"curve":"ranks"`) {
		t.Errorf("%v %s", err, b)
	}
}

func TestTimeString(t *testing.T) {
	for s, want := range map[float64]string{5.4e-8: "54 ns", 1.234e-5: "12.3 us", 4.56e-3: "4.56 ms", 0.5: "500 ms", 1.234: "1.23s"} {
		if got := timeString(s); got != want {
			t.Errorf("%v: %s", s, got)
		}
	}
}

// Points of each curve, by real processes.
func TestGrowthOfWeft(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{config: config{rounds: 1, seconds: 0.3, log: io.Discard, self: []string{self}}, dir: t.TempDir()}
	measure := func() (*growthReport, error) {
		rep := &growthReport{Curves: growthPlan(regexp.MustCompile("^(10 variables|100 blocks|16 writer ranks)$"))}
		return rep, r.measureGrowth(t.Context(), rep)
	}
	rep, err := measure()
	for errors.Is(err, errNothing) && r.seconds < 8 { // the machine has other things to do
		r.seconds *= 3
		rep, err = measure()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rep.Curves {
		if len(c.Points) != 1 || len(c.Points[0].Samples) != 1 || c.Points[0].perItem() <= 0 {
			t.Errorf("%s: %+v", c.Name, c.Points)
		}
	}
}

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-fabric/weft/internal/testutil"
)

// exampleReport has round numbers.
func exampleReport() *report {
	of := func(steps ...int64) []sample {
		var list []sample
		for i, n := range steps {
			list = append(list, sample{Round: i, Steps: n, Seconds: 1, WriterStep: 2 * n, WriterCPU: 0.5, ReaderCPU: 0.5, WriterMem: 40 << 20, ReaderMem: 30 << 20})
		}
		return list
	}
	big, span, small := rows[0], rows[1], rows[3]
	viewed := of(600, 500, 700)
	for i := range viewed {
		viewed[i].Viewed = true
	}
	return &report{
		Machine: machine{CPU: "Example CPU", CPUs: 2, Kernel: "6.1", Arch: "amd64", Go: "go1.26.8", ADIOS2: "2.10.2"},
		Seconds: 1.5,
		Loads:   []float64{0, 0.05, 0.01},
		Lines: []line{
			{big, path{weft, adios2}, of(300, 400, 500)},
			{big, base, of(300, 200, 250)},
			{span, path{weft, weft}, viewed},
			{span, path{adios2, weft}, of(300, 300, 300)},
			{span, base, of(300, 250, 350)},
			{small, path{weft, weft}, of(30000, 10000, 20000)},
			{row{Bytes: 8 << 20, Queue: 1, Access: copying, Writers: 4, Readers: 2, Vars: 100}, path{weft, weft}, of(100)},
		},
	}
}

func render(t *testing.T, r *report) string {
	t.Helper()
	var b strings.Builder
	if err := writeTable(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	testutil.Golden(t, "table.md", []byte(render(t, exampleReport())))
}

func TestTableIsAligned(t *testing.T) {
	width := 0
	for _, l := range strings.Split(render(t, exampleReport()), "\n") {
		if !strings.HasPrefix(l, "|") {
			continue
		}
		if width == 0 {
			width = utf8.RuneCountInString(l)
		}
		if n := utf8.RuneCountInString(l); n != width {
			t.Errorf("%d wide instead of %d: %s", n, width, l)
		}
	}
}

func TestCaption(t *testing.T) {
	r := exampleReport()
	r.Loads[1] = 0.7
	r.LeftOut = "needs root, to chroot and mount\nmore"
	r.Machine.ADIOS2 = ""
	got := render(t, r)
	for _, want := range []string{"busy before 1 of 3 rounds", "only Weft → Weft was measured**: needs root, to chroot and mount\n", "ADIOS2 none"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "was idle") {
		t.Error("idle and busy at once")
	}
}

func TestRatioString(t *testing.T) {
	for q, want := range map[float64]string{0: "0.00", 1.254: "1.25", 0.5: "0.50", 0.00115: "0.0011", 20.291: "20.29"} {
		if got := ratioString(q); got != want {
			t.Errorf("%v: %q, want %q", q, got, want)
		}
	}
}

func TestCPUName(t *testing.T) {
	for in, want := range map[string]string{
		"processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: Other\n": "Some CPU @ 2 GHz",
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n":                            "implementer 0x41 part 0xd40",
		"":       "",
		"junk\n": "",
	} {
		if d := cmp.Diff(want, cpuName(in)); d != "" {
			t.Error(d)
		}
	}
}

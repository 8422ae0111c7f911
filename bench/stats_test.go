package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want summary
	}{
		{nil, summary{}},
		{[]float64{3}, summary{3, 3, 3, 1}},
		{[]float64{4, 1}, summary{2.5, 1, 4, 2}},
		{[]float64{9, 1, 5}, summary{5, 1, 9, 3}},
		{[]float64{4, 3, 2, 1}, summary{2.5, 1, 4, 4}},
	} {
		in := append([]float64(nil), c.in...)
		if got := summarize(in); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.in, got, c.want)
		}
		if d := cmp.Diff(c.in, in); d != "" {
			t.Errorf("the values were moved: %s", d)
		}
	}
}

func TestRate(t *testing.T) {
	if got := (sample{Steps: 30, Seconds: 1.5}).rate(); got != 20 {
		t.Error(got)
	}
	if got := (sample{Steps: 30}).rate(); got != 0 {
		t.Error(got)
	}
}

// Ratios compare runs of one round only.
func TestRatios(t *testing.T) {
	ours := []sample{{Round: 0, Steps: 30, Seconds: 1}, {Round: 1, Steps: 10, Seconds: 1}, {Round: 2, Steps: 5, Seconds: 1}, {Round: 3, Steps: 5, Seconds: 1}}
	theirs := []sample{{Round: 1, Steps: 20, Seconds: 1}, {Round: 0, Steps: 10, Seconds: 1}, {Round: 3}}
	if d := cmp.Diff([]float64{3, 0.5}, ratios(ours, theirs)); d != "" {
		t.Error(d)
	}
	if got := ratios(ours, nil); got != nil {
		t.Error(got)
	}
}

package main

import (
	"context"
	"errors"
	"testing"
)

const statBefore = "cpu  1000 10 500 90000 90 0 5 7 0 0\ncpu0 500 5 250 45000 45 0 2 3 0 0\n"

func TestParseStat(t *testing.T) {
	got, err := parseStat(statBefore)
	if want := (cpuTime{total: 91612, idle: 90090}); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu 1 2 3 x 5 6 7 8", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 -4 5 6 7 8"} {
		if _, err := parseStat(bad); !errors.Is(err, errStat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLoad(t *testing.T) {
	before := cpuTime{total: 1000, idle: 900}
	for _, c := range []struct {
		after cpuTime
		want  float64
	}{
		{cpuTime{1040, 940}, 0},  // all idle
		{cpuTime{1040, 900}, 2},  // all busy
		{cpuTime{1040, 920}, 1},  // half
		{cpuTime{1000, 900}, 0},  // no time has passed
		{cpuTime{990, 890}, 0},   // counters that went back
		{cpuTime{1040, 890}, 0},  // idle time can shrink, the kernel says
		{cpuTime{1010, 1000}, 0}, // more idle than time
	} {
		if got := load(before, c.after, 2); got != c.want {
			t.Errorf("%+v: %v, want %v", c.after, got, c.want)
		}
	}
}

func TestMeasureLoad(t *testing.T) {
	got, err := measureLoad(t.Context(), 2)
	if err != nil || got < 0 || got > 2 {
		t.Errorf("%v %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measureLoad(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package main

import (
	"errors"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	c := clock{warmup: 10 * time.Second}
	start := time.Unix(1000, 0)
	for i := range 21 { // a step each second: the one at 10 s ends the warm-up
		c.tick(start.Add(time.Duration(i) * time.Second))
	}
	if c.steps != 10 || c.to.Sub(c.from) != 10*time.Second {
		t.Errorf("%d steps in %v", c.steps, c.to.Sub(c.from))
	}
	var never clock
	never.warmup = time.Minute
	never.tick(start)
	if never.steps != 0 || never.to.Sub(never.from) != 0 {
		t.Errorf("%+v", never)
	}
}

func TestPeak(t *testing.T) {
	const head = "Name:\tbench\nVmPeak:\t  200000 kB\n"
	for text, want := range map[string]uint64{
		head + "VmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n": 12345 << 10,
		head + "VmHWM:\t       0 kB":                  0,
	} {
		if n, err := parsePeak(text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, bad := range []string{"", head, head + "VmHWM:\n", head + "VmHWM:\t12 MB\n", head + "VmHWM:\t-1 kB\n", head + "VmHWM:\t99999999999999999999 kB\n"} {
		if n, err := parsePeak(bad); !errors.Is(err, errStatus) {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
}

func TestSaid(t *testing.T) {
	var c clock
	c.tick(time.Now())
	c.tick(time.Now())
	if s, err := c.said(); err != nil || s.Steps != 1 || s.CPU < 0 || s.Memory < 1<<20 {
		t.Errorf("%+v, %v", s, err)
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// clock counts the steps whose end it is told, and the time that they took, of the wall and of the
// processors. The first steps, for as long as warmup, only start it.
type clock struct {
	warmup          time.Duration
	start, from, to time.Time
	steps           int64
	cpu             time.Duration // when it was started
}

// clock makes that of a role.
func (a roleArgs) clock() clock {
	return clock{warmup: time.Duration(a.warmup * float64(time.Second))}
}

func (c *clock) tick(now time.Time) {
	if c.start.IsZero() {
		c.start = now
	}
	switch {
	case !c.from.IsZero():
		c.steps++
		c.to = now
	case now.Sub(c.start) >= c.warmup:
		c.from, c.to, c.cpu = now, now, sys.ProcessorTime()
	}
}

// said is what there is to say right after the last step.
func (c *clock) said() (said, error) {
	s := said{Steps: c.steps, Seconds: c.to.Sub(c.from).Seconds()}
	if c.steps > 0 {
		s.CPU = (sys.ProcessorTime() - c.cpu).Seconds()
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return s, err
	}
	s.Memory, err = parsePeak(string(b))
	return s, err
}

var errStatus = errors.New("bench: unexpected /proc/self/status")

// parsePeak finds the line "VmHWM:	   12345 kB", and returns bytes. The ru_maxrss of getrusage(2) will not do: a process
// inherits that of the one it was forked from.
func parsePeak(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "VmHWM:" || f[2] != "kB" {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 54)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errStatus, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("%w: it has no VmHWM", errStatus)
}

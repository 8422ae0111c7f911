package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// idleWindow is how long the machine is looked at before a round.
	idleWindow = 200 * time.Millisecond
	// busyLoad is the load, in processors, from which on a machine counts as
	// busy: with two of them a tenth of one already moves a latency.
	busyLoad = 0.10
)

// cpuTime is the first line of /proc/stat: ticks since boot, of all processors.
type cpuTime struct{ total, idle uint64 }

var errStat = errors.New("bench: unexpected /proc/stat")

// parseStat reads "cpu user nice system idle iowait irq softirq steal guest
// guest_nice". The last two are part of user and nice.
func parseStat(text string) (cpuTime, error) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return cpuTime{}, fmt.Errorf("%w: %q", errStat, line)
	}
	var t cpuTime
	for i, s := range f[1:9] {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return cpuTime{}, fmt.Errorf("%w: %w", errStat, err)
		}
		t.total += n
		if i == 3 || i == 4 { // idle, and waiting for a disk
			t.idle += n
		}
	}
	return t, nil
}

func readStat() (cpuTime, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}, err
	}
	return parseStat(string(b))
}

// load is how many of the machine's processors were busy between two readings.
func load(before, after cpuTime, cpus int) float64 {
	total := after.total - before.total
	idle := after.idle - before.idle
	if total == 0 || after.total < before.total || after.idle < before.idle || idle > total {
		return 0
	}
	return float64(total-idle) / float64(total) * float64(cpus)
}

// measureLoad looks at the machine for idleWindow.
func measureLoad(ctx context.Context, cpus int) (float64, error) {
	before, err := readStat()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(idleWindow):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := readStat()
	if err != nil {
		return 0, err
	}
	return load(before, after, cpus), nil
}

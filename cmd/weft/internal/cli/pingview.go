package cli

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
)

// pingOutput prints results as they come.
type pingOutput struct {
	*output
	json   bool
	config ping.Config
	pin    string
	peer   int // pid of the peer process, 0: none that is known
	op     ping.Op
	pause  time.Duration
}

func newPingOutput(env Env, opt *pingOptions, c ping.Config) *pingOutput {
	return &pingOutput{output: newOutput(env.Stdout), json: opt.json, config: c, pin: opt.pin, op: ping.Op(opt.op), pause: opt.pause}
}

// object prints a line of JSON.
func (o *pingOutput) object(v any) error {
	b, err := jsonLine(v)
	if err != nil {
		return err
	}
	o.bytes(b)
	return o.flush()
}

const pingColumns = "%10s %8s %10s %10s %10s %12s %12s %9s %9s\n"

// result prints one size.
func (o *pingOutput) result(r ping.Result) error {
	if o.json {
		return o.object(r)
	}
	o.printf(pingColumns, sizeText(r.Size), fmt.Sprint(r.Iters), micros(r.Latency.Min), micros(r.Latency.Median), micros(r.Latency.P99),
		fmt.Sprintf("%.1f", r.MBPerS), fmt.Sprintf("%.0f", r.OpsPerS), fmt.Sprintf("%.3f", r.CPU.Local), o.peerCPU(r.CPU.Peer))
	return o.flush()
}

// head says what the numbers are, before there are any: large sizes take long.
func (o *pingOutput) head() error {
	if o.json {
		return nil
	}
	wait := "polls, then sleeps"
	switch o.config.Wait {
	case ping.Spin:
		wait = "polls"
	case ping.Sleep:
		wait = "sleeps"
	case ping.Ladder:
	}
	o.printf("%s, %s; a side that waits %s; %s progress", printable(o.config.Provider), o.op, wait, o.config.Progress)
	if o.pause > 0 {
		o.printf("; latency after a pause of %v", o.pause)
	}
	if o.pin != "" {
		o.printf("; on %s", map[string]string{"same": "one processor", "apart": "two processors"}[o.pin])
	}
	switch {
	case o.config.Provider == loopName:
		o.text("; peer in this process")
	case o.peer != 0:
		o.printf("; peer process %d", o.peer)
	}
	o.text("\n")
	o.printf(pingColumns, "size", "iters", "min us", "median us", "p99 us", "MB/s", "ops/s", "cpu s", "peer's")
	return o.flush()
}

// peerCPU is a dash where both sides are one process.
func (o *pingOutput) peerCPU(s float64) string {
	if o.config.Provider == loopName {
		return "-"
	}
	return fmt.Sprintf("%.3f", s)
}

// micros has three digits that count.
func micros(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// sizeText is a number of bytes as --size takes it.
func sizeText(n int) string {
	units := []string{"", "K", "M", "G"}
	u := 0
	for n > 0 && n%1024 == 0 && u < len(units)-1 {
		n /= 1024
		u++
	}
	return fmt.Sprint(n) + units[u]
}

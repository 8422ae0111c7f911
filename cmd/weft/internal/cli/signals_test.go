package cli

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A double press is one wish; leaving at once, which may take the writer down,
// takes a press that is meant.
func TestPatience(t *testing.T) {
	type press struct {
		sig  os.Signal
		at   time.Duration
		want reaction
	}
	for name, list := range map[string][]press{
		"once":          {{os.Interrupt, 0, endCleanly}},
		"double press":  {{os.Interrupt, 0, endCleanly}, {os.Interrupt, 200 * time.Millisecond, takeNoNotice}, {os.Interrupt, 999 * time.Millisecond, takeNoNotice}},
		"meant":         {{os.Interrupt, 0, endCleanly}, {os.Interrupt, time.Second, leaveAtOnce}},
		"after a few":   {{os.Interrupt, 0, endCleanly}, {os.Interrupt, 300 * time.Millisecond, takeNoNotice}, {os.Interrupt, 1100 * time.Millisecond, leaveAtOnce}},
		"terminated":    {{syscall.SIGTERM, 0, endCleanly}, {syscall.SIGTERM, 2 * time.Second, leaveAtOnce}},
		"closed window": {{syscall.SIGHUP, 0, endCleanly}, {syscall.SIGHUP, 2 * time.Second, takeNoNotice}, {syscall.SIGTERM, 3 * time.Second, leaveAtOnce}},
	} {
		t.Run(name, func(t *testing.T) {
			var p patience
			begin := time.Now()
			for _, c := range list {
				if got := p.take(c.sig, begin.Add(c.at)); got != c.want {
					t.Errorf("%v after %v: %v, want %v", c.sig, c.at, got, c.want)
				}
			}
		})
	}
}

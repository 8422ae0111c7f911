package ping

import (
	"slices"
	"time"
)

// Result is what one size gave. As JSON it is what weft ping --json prints.
type Result struct {
	Provider string       `json:"provider"`
	Op       Op           `json:"op"`
	Size     int          `json:"size"`               // bytes
	Iters    int          `json:"iters"`              // of each phase
	PauseUS  float64      `json:"pause_us,omitempty"` // before each operation of the latency phase, in microseconds
	Latency  Distribution `json:"latency_us"`
	MBPerS   float64      `json:"mb_per_s"` // 10^6 bytes of data a second, of the rate phase
	OpsPerS  float64      `json:"ops_per_s"`
	CPU      CPU          `json:"cpu_s"`
}

// Distribution is that of the latencies, in microseconds: half a round trip of
// operations that go to and fro, else the time of one operation.
type Distribution struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// CPU is the processor time of both sides in seconds, of all phases with their
// warming up.
type CPU struct {
	Local float64 `json:"local"`
	Peer  float64 `json:"peer"`
}

// distribution sums up samples in nanoseconds, of which each is worth share.
// It sorts them.
func distribution(ns []int64, share float64) Distribution {
	if len(ns) == 0 {
		return Distribution{}
	}
	slices.Sort(ns)
	at := func(q float64) float64 { return float64(ns[int(q*float64(len(ns)-1)+0.5)]) * share / 1e3 }
	return Distribution{Min: at(0), Median: at(0.5), P99: at(0.99)}
}

// rates are operations, and MB, a second.
func (r *Result) rates(n int, d time.Duration) {
	r.OpsPerS = float64(n) * 1e9 / float64(max(d, 1))
	r.MBPerS = r.OpsPerS * float64(r.Size) / 1e6
}

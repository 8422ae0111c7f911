package cli

import (
	"time"

	"github.com/weft-fabric/weft/sst"
)

// rates are what happened between two snapshots of a writer, by its own clock.
type rates struct {
	Seconds float64 `json:"seconds"` // between the snapshots
	Steps   float64 `json:"steps_per_second"`
	Bytes   float64 `json:"bytes_per_second"`
}

// ratesBetween returns nil if the two do not belong together: another writer,
// or a clock that was set back.
func ratesBetween(old, now sst.Stat) *rates {
	span := now.Time.Sub(old.Time).Seconds()
	if old.Stream != now.Stream || span <= 0 || now.NextStep < old.NextStep || now.Written < old.Written {
		return nil
	}
	return &rates{Seconds: span, Steps: float64(now.NextStep-old.NextStep) / span, Bytes: float64(now.Written-old.Written) / span}
}

// rateWindow is the time over which a view shows rates: between one snapshot and
// the next a slow simulation makes either no step or one.
const rateWindow = 10 * time.Second

// history keeps the snapshots of the last rateWindow.
type history struct{ list []sst.Stat }

// add takes a snapshot in and returns the rates since the oldest one kept, nil
// if there is none.
func (h *history) add(st sst.Stat) *rates {
	if n := len(h.list); n > 0 && h.list[n-1].Stream != st.Stream {
		h.list = nil // another writer has taken the name
	}
	for len(h.list) > 1 && st.Time.Sub(h.list[0].Time) > rateWindow {
		h.list = h.list[1:]
	}
	h.list = append(h.list, st)
	if len(h.list) == 1 {
		return nil
	}
	r := ratesBetween(h.list[0], st)
	if r == nil {
		h.list = []sst.Stat{st}
	}
	return r
}

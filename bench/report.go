package main

// report is all that a run found out.
type report struct {
	Machine machine   `json:"machine"`
	Seconds float64   `json:"seconds"` // measured for each pair and round
	Loads   []float64 `json:"loads"`   // processors busy before each round
	LeftOut string    `json:"left_out,omitempty"`
	Lines   []line    `json:"lines"`
}

// line is one path of one row, in all rounds.
type line struct {
	Row     row      `json:"row"`
	Path    path     `json:"path"`
	Samples []sample `json:"samples"`
}

// busyRounds is the number of rounds that began on a busy machine.
func busyRounds(loads []float64) int {
	n := 0
	for _, l := range loads {
		if l >= busyLoad {
			n++
		}
	}
	return n
}

// theirs returns the line that l is compared with, if it was measured.
func (r *report) theirs(l line) (line, bool) {
	for _, other := range r.Lines {
		if other.Row == l.Row && other.Path == base {
			return other, true
		}
	}
	return line{}, false
}

// viewed reports whether Weft readers of the line read in place.
func (l line) viewed() bool { return len(l.Samples) > 0 && l.Samples[0].Viewed }

package main

import (
	"math"
	"slices"
)

// summary is a set of numbers in three.
type summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// summarize sums values up; of none it is zero.
func summarize(values []float64) summary {
	if len(values) == 0 {
		return summary{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return summary{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0], Max: v[n-1], N: n}
}

// sample is what one pair of processes did in one round.
type sample struct {
	Round      int     `json:"round"`
	Steps      int64   `json:"steps"` // that the reader took after warming up
	Seconds    float64 `json:"seconds"`
	Viewed     bool    `json:"viewed"`      // a Weft reader read in place
	WriterCPU  float64 `json:"writer_cpu"`  // seconds of processor time for the writer's steps
	ReaderCPU  float64 `json:"reader_cpu"`  // the same, for the reader's
	WriterStep int64   `json:"writer_step"` // steps that the writer wrote after warming up
	WriterMem  uint64  `json:"writer_mem"`  // bytes that the largest process had resident, at most
	ReaderMem  uint64  `json:"reader_mem"`  // the same
}

// perGB is the processor time of writer and reader for each 10^9 bytes.
func (s sample) perGB(bytes int) (writer, reader float64) {
	per := func(cpu float64, steps int64) float64 {
		return cpu / (float64(max(steps, 1)) * float64(bytes) / 1e9)
	}
	return per(s.WriterCPU, s.WriterStep), per(s.ReaderCPU, s.Steps)
}

// rate is steps a second.
func (s sample) rate() float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return float64(s.Steps) / s.Seconds
}

// rates of all samples.
func rates(samples []sample) []float64 {
	var v []float64
	for _, s := range samples {
		v = append(v, s.rate())
	}
	return v
}

// ratios compares the samples of each round that has both.
func ratios(ours, theirs []sample) []float64 {
	var v []float64
	for _, a := range ours {
		for _, b := range theirs {
			if q := a.rate() / b.rate(); a.Round == b.Round && b.rate() > 0 && !math.IsNaN(q) {
				v = append(v, q)
			}
		}
	}
	return v
}

package fabrictest

import (
	"sync"
	"sync/atomic"
)

// spins are goroutines that compute, and call nothing of the provider, until they are told to stop.
type spins struct {
	stop   atomic.Bool
	run    sync.WaitGroup
	result atomic.Uint64
}

// begin starts n of them.
func (s *spins) begin(n int) {
	s.stop.Store(false)
	for range n {
		s.run.Go(func() {
			x := uint64(1)
			for !s.stop.Load() {
				for range 1000 {
					x = x*6364136223846793005 + 1
				}
			}
			s.result.Add(x)
		})
	}
}

// end stops them, and returns something that had to be computed.
func (s *spins) end() uint64 {
	s.stop.Store(true)
	s.run.Wait()
	return s.result.Load()
}

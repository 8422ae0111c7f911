package testutil

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomised tests; 0 takes a new one each time")

// Rand returns a source of random numbers for one test and logs its seed, which the flag -seed
// gives back to it. The source is not safe for concurrent use: call Rand once for each goroutine
// of a test that needs numbers.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed: -seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

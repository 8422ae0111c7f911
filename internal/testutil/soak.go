package testutil

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// soakEnv, set to 1, asks for the full counts; set to wide, for all kinds of test in small counts.
const soakEnv = "WEFT_SOAK"

// Count returns how many rounds a test called TestSoak... runs: few in an
// ordinary run, full in `make soak`.
func Count(t testing.TB, few, full int) int {
	t.Helper()
	if os.Getenv(soakEnv) == "1" {
		return full
	}
	return few
}

// Last returns whether a test called TestSoak... goes on with another round: few of them in an ordinary run, and in
// `make soak` as many as begin before the time from now on is over. What it returns is safe for concurrent use.
func Last(t testing.TB, few int, full time.Duration) (more func() bool) {
	t.Helper()
	if os.Getenv(soakEnv) == "1" {
		end := time.Now().Add(full)
		return func() bool { return time.Now().Before(end) }
	}
	var begun atomic.Int64
	return func() bool { return begun.Add(1) <= int64(few) }
}

// Pick returns what an ordinary run uses, or in `make soak` all of it.
func Pick[T any](t testing.TB, some, all T) T {
	t.Helper()
	if soak := os.Getenv(soakEnv); soak == "1" || soak == "wide" {
		return all
	}
	return some
}

package testutil

import (
	"os"
	"testing"
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

// Pick returns what an ordinary run uses, or in `make soak` all of it.
func Pick[T any](t testing.TB, some, all T) T {
	t.Helper()
	if soak := os.Getenv(soakEnv); soak == "1" || soak == "wide" {
		return all
	}
	return some
}

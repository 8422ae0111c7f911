// Package testutil is support for the tests of this module: a TestMain that finds what a test left
// behind, child processes in named roles, golden files, capability checks with named skips, seeds
// that are printed, and the roots with the real ADIOS2 in them.
//
// It is not for product code: archtest lets only tests import it. It imports nothing else of the
// module, so that every package, the lowest included, can use it from its own tests.
//
// Concurrency: functions that take a testing.TB are called from the goroutine of that test, as
// testing demands of FailNow. The methods of Process say themselves what else is safe.
package testutil

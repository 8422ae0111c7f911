// Package interop holds the tests of Weft against real ADIOS2, and what they
// need: the peers, which are Python programs that run inside a Debian root with
// ADIOS2 2.10.2 (peers/, root.sh), their drivers (this package), and the table
// of values that both sides know (package zoo). README.md says how the root is
// made and what the peers can do.
//
// It is test support. Its functions take a testing.TB, are called from the
// goroutine of that test or benchmark, and leave nothing behind: a peer ends with
// the test that started it. Without the root they skip the test, or fail it if
// WEFT_REQUIRE_PEERS=1 (testutil.Require).
package interop

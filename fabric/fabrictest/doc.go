// Package fabrictest is the law for providers of package fabric: a provider is right when it passes.
//
// A provider's package runs it from a test, with itself linked in:
//
//	func TestMain(m *testing.M) { fabrictest.Main(m) }
//
//	func TestConformance(t *testing.T) {
//		for _, procs := range []int{1, 2, 4} {
//			t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
//				fabrictest.Run(t, fabrictest.Config{Provider: "mine", Procs: procs})
//			})
//		}
//	}
//
// The suite calls package fabric, as a program does. It runs every group of tests in every progress mode that the
// provider's Info names, and skips only what that Info does not offer. With WEFT_SOAK=1 the groups run with their
// full counts, which takes hours; a test that is to be part of a soak is called TestSoak... by the custom of this module.
//
// # How it is made
//
// A test is a script over sides. A side is a program that uses the provider: an agent that carries out requests, in this
// process or in a child process, which is the test binary started again. So nearly every group runs over one
// process and over many, without another line. What is about single calls (waits, allocations, close races) uses
// domains of this process directly.
//
// The package is for tests. It is not a benchmark, and it does not look inside a provider. Run is called from one test
// at a time: some groups measure the process.
package fabrictest

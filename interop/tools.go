package interop

import (
	"testing"
)

// Reorganize starts adios2_reorganize, the copy tool of ADIOS2, in dir: it reads
// the stream or file from with one engine and writes to with another. It cannot
// pass on local arrays. Parameters are as on its command line, "K=V,K=V"; SST
// needs DataTransport=WAN to be readable by Weft.
func Reorganize(t testing.TB, dir, from, fromEngine, fromParams, to, toEngine, toParams string) *Peer {
	t.Helper()
	return run(t, dir, nil, []string{
		"adios2_reorganize.serial", from, to, fromEngine, fromParams, toEngine, toParams,
	})
}

// BPLS runs bpls, the lister of ADIOS2, in dir, and returns what it prints. It
// fails the test if bpls fails.
func BPLS(t testing.TB, dir string, args ...string) string {
	t.Helper()
	p := run(t, dir, nil, append([]string{"bpls.serial"}, args...))
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return p.Stdout()
}

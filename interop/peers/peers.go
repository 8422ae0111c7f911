// Package peers holds the sources of the foreign programs that Weft is tested
// and measured against. They run inside a Debian root (../root.sh).
package peers

import _ "embed" // the sources are data

// SST is a C++ program that writes or reads a stream as fast as it can, and
// touches every byte; package bench compiles it.
//
//go:embed cpp/sst.cpp
var SST string

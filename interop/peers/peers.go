// Package peers holds the sources of the foreign programs that Weft is tested
// and measured against. They run inside a Debian root (../root.sh), but those of Hooks.
package peers

import "embed"

// SST is a C++ program that writes or reads a stream as fast as it can, and
// touches every byte; package bench compiles it.
//
//go:embed cpp/sst.cpp
var SST string

// Hooks are libraries that change memory functions of the C library in the ways that registration caches do, and a program to
// load them into. The tests compile them with the host's compiler.
//
//go:embed hooks/*.c
var Hooks embed.FS

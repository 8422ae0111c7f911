// Package archtest holds the rules of the house that a compiler does not know, as tests over the
// module's own source: who may import whom, where unsafe, syscalls and C may stand, who may read
// the environment, that no test sleeps, and which words have no place in the tree.
//
// The rules are data where they can be: a new package gets a row in table.go, and a review sees
// it. An exception is a row with a reason, and a row that has become unnecessary is an error too.
// Each rule has a test with a source that breaks it.
//
// It parses files and type-checks nothing; it runs without the go command and without a network.
package archtest

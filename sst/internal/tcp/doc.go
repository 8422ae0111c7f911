// Package tcp is what the two users of TCP connections in the engine have in
// common, the carrier of messages and the cohort: how a listener goes on when the
// process is out of descriptors, how long a vanished host stays unnoticed, under
// which addresses this host may be known, what a connection that does not leave it
// does without, and waits that end with a context.
//
// What it is not: a layer over package net. It owns no connection, keeps no state
// and logs nothing; who calls decides what an error means, and says it.
//
// Concurrency: every function is safe for concurrent use. None starts a goroutine
// that outlives what it returns, but for the one of EndWith while ctx ends.
package tcp

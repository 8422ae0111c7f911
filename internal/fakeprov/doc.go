// Package fakeprov is a small provider for the tests of what stands on package
// fabric/provider: all of it happens inside the posts, in one process, under one
// lock. What it offers is right; it offers little, and is not fast.
//
// It is not the reference: that is prov/loop, which has the whole of the model.
//
// Everything is safe for concurrent use. It starts no goroutine.
package fakeprov

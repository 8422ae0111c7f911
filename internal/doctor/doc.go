// Package doctor looks at what this machine allows this process, what that means for Weft, and what can be done about what is missing. It tries
// what can be tried, and reads the rest from /proc, /sys and the folders of libraries.
//
// It is no provider, and opens none: whether one works is its own word. Needed is what the provider of a node, prov/shm, cannot do without; all
// else has a fallback, or is for other ways.
//
// It changes nothing that stays. Its functions keep no state and are safe for concurrent use.
package doctor

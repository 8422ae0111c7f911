package interop

import "time"

// soon is the bound of promise P7 and field F22: what is lost is reported by
// then.
const soon = 5 * time.Second

// look is how often a condition is looked at that has no event.
const look = 5 * time.Millisecond

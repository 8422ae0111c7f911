package memmon

// The caches of a process share what it may pin (RLIMIT_MEMLOCK, the device's own limits): what one of them keeps idle must not keep another
// one from registering.

// OnShortage has letGo called when somebody finds no memory to pin, by his goroutine: a cache then gives back what is idle. It must not
// wait for anybody who may be in Shortage himself. stop ends it; calls that have begun may still be running then.
func (a *Arbiter) OnShortage(letGo func()) (stop func()) {
	return a.shortage.add(func(Range) { letGo() })
}

// Shortage says that there is no memory to pin, and returns when all caches have let go of what is idle. The caller holds no lock.
func (a *Arbiter) Shortage() { a.shortage.tell(Everything) }

package memmon

// Export has gone called with each range that Go takes away: an [Arena]'s, and what [Arbiter.Notify] says; before it goes, by the goroutine
// that takes it. It is for other libraries in the process that keep registrations, whose hooks in the C library do not see Go's system
// calls: gone calls ucm_vm_munmap of UCX, say, or the notify that libfabric's import gives. It must not call the arbiter, nor the arena that goes, and is not nil.
// What hooks in C post is not told here: who wants that subscribes in C (weft_events_subscribe). stop ends it; calls that have begun may
// still be running then.
func (a *Arbiter) Export(gone func(Range)) (stop func()) { return a.exports.add(gone) }

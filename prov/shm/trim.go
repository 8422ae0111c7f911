package shm

// Memory that is given back is used anew first, since a segment is not for nothing: its pages are made and zeroed, each peer maps it
// and faults it in. But segments in which no block is left go back to the system as soon as they are more than is in use now, and
// more than keepIdle: who has freed all has no more than that, and who has not, no more than twice what he uses. The rule looks at
// bytes and not at the clock, so nothing has to wake for it.
//
// Two of the largest ordinary segments are kept, so that steps of up to 64 MiB make no segment once they have them: a large block
// that does not fit beside a small one has the second.
const keepIdle = 2 * maxSegment

// surplus says whether segments are to be given back.
func (a *arena) surplus() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed && a.empty() > a.keep()
}

// keep is how many bytes of idle segments are kept.
func (a *arena) keep() uint64 { return max(a.spaces[0].used+a.spaces[1].used, keepIdle) }

// empty is the bytes of idle segments.
func (a *arena) empty() uint64 { return a.spaces[0].empty + a.spaces[1].empty }

// trim drops idle segments until no more than so many bytes of them are left, and gives their files, for the caller to close. It
// begins with the kind of memory that has more of them.
func (a *arena) trim(keep uint64) (files []*file) {
	for a.empty() > keep {
		space := a.spaces[0]
		if other := a.spaces[1]; other.empty > space.empty {
			space = other
		}
		files = append(files, a.drop(space.shed(keep)))
	}
	return files
}

func closeAll(files []*file) {
	for _, f := range files {
		f.close()
	}
}

// shed gives back what is too much, after it has looked for blocks that peers have let go of. Locked.
func (d *domain) shed() {
	a := d.arena
	a.mu.Lock()
	var files []*file
	if !a.closed {
		a.sweep()
		files = a.trim(a.keep())
	}
	a.mu.Unlock()
	d.giveBack(files)
}

// giveBack tells peers of segments that were dropped, and closes them. To unmap takes the kernel longer than the lock should be
// held. Locked.
func (d *domain) giveBack(files []*file) {
	if files != nil {
		d.announce()
		d.core.After(func() { closeAll(files) })
	}
}

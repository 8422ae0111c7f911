package sst

import "time"

// deadFile is a contact file behind which nobody answers. It may lie there for
// long, and its port may be another program's by now: that is not knocked at with
// every look at the file.
type deadFile struct {
	file  string // its content
	err   error  // what came of asking
	tries int
	wait  time.Duration // until the next one
	next  time.Time
}

// maxRedial is how long a dead address is left alone at most.
const maxRedial = time.Second

// known returns what is known of a file that need not be tried again yet.
func (d *deadFile) known(c contactFile, now time.Time) error {
	if d.err == nil || d.file != c.line() || !now.Before(d.next) {
		return nil
	}
	return d.err
}

// note takes in that a file was tried in vain.
func (d *deadFile) note(c contactFile, now time.Time, err error) {
	if line := c.line(); d.file != line {
		*d = deadFile{file: line}
	}
	d.err = err
	d.tries++
	d.wait = min(max(pollInterval, 2*d.wait), maxRedial)
	d.next = now.Add(d.wait)
}

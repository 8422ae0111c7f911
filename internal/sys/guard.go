package sys

import "errors"

// Guard is a mark that a process has announced, and where it lies in its memory: what tells that a process
// number still means that process.
type Guard struct {
	At   uint64
	Mark [16]byte
}

// ErrOtherProcess is returned when a process does not have the mark that it should: the number is another process's.
var ErrOtherProcess = errors.New("sys: another process has this number")

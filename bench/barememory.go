package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// bareMemory is what says how near the rows of steps are to what the machine can do: two processes that share memory for the steps, and two tallies in it.
// They touch the bytes as the others do, and that is all.
const bareMemory kind = "bare"

// bareFD is the number that a process finds the memory at, behind the counters.
const bareFD = int(fromPeer) + 1

// Where things lie in the memory: two tallies, the places of steps, and behind them which step lies where.
const (
	writtenAt = 0          // the tally of steps that are out
	takenAt   = tallyBytes // the tally of those that are given back
	stepsAt   = 4096
)

// barePlaces is how many steps the memory has room for: those in the queue, and one that is being filled, as in all rows.
func (a roleArgs) barePlaces() int { return a.queue + 1 }

// barePlace is how many bytes a place takes.
func (a roleArgs) barePlace() int { return (a.bytes + tallyLine - 1) / tallyLine * tallyLine }

func (a roleArgs) bareWhichAt() int { return stepsAt + a.barePlaces()*a.barePlace() }
func (a roleArgs) bareBytes() int   { return a.bareWhichAt() + 8*a.barePlaces() }

// bareFiles makes what both processes get: the counters, and the memory.
func (a roleArgs) bareFiles() ([]*os.File, error) {
	files, err := newCounters()
	if err != nil {
		return nil, err
	}
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft bench", Size: int64(a.bareBytes())})
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return append(files, os.NewFile(uintptr(fd.Disown()), "memory")), nil
}

// bareSteps is one side of a bare stream.
type bareSteps struct {
	written, taken tally
	places         [][]int64
	which          []uint64 // of the places a step has: that of step n is at n % len
	own            []int64  // of the process; nil: it works where the steps lie
	mapping        *sys.Mapping

	// The writer's.
	free []uint64 // places, the one that was given back last at the end: its bytes are in caches still
	back uint64   // steps that have come back
}

// openBare maps the memory. own says that this side copies.
func openBare(a roleArgs, fd *sys.FD, toWriter, toReader sys.Counter, own bool) (*bareSteps, error) {
	m, err := sys.Map(fd, 0, a.bareBytes(), true)
	if err != nil {
		return nil, err
	}
	b := &bareSteps{mapping: m}
	if err := b.cut(a, toWriter, toReader); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if own {
		b.own = make([]int64, a.elements())
	}
	return b, nil
}

var errNotAligned = errors.New("bench: an array is not aligned")

// cut finds everything in the memory.
func (b *bareSteps) cut(a roleArgs, toWriter, toReader sys.Counter) (err error) {
	r := shmem.RegionOf(b.mapping)
	if b.written, err = newTally(r, writtenAt, toReader); err != nil {
		return err
	}
	if b.taken, err = newTally(r, takenAt, toWriter); err != nil {
		return err
	}
	if b.which, err = cutArray[uint64](r, a.bareWhichAt(), a.barePlaces()); err != nil {
		return err
	}
	for i := range a.barePlaces() {
		data, err := cutArray[int64](r, stepsAt+i*a.barePlace(), a.elements())
		if err != nil {
			return err
		}
		b.places, b.free = append(b.places, data), append(b.free, uint64(i))
	}
	return nil
}

// cutArray is the array of n elements of 8 bytes at a place.
func cutArray[T int64 | uint64](r shmem.Region, at, n int) ([]T, error) {
	b, err := r.Bytes(uint64(at), uint64(8*n))
	if err != nil {
		return nil, err
	}
	list, ok := shmem.As[T](b)
	if !ok {
		return nil, fmt.Errorf("%w: %d", errNotAligned, at)
	}
	return list, nil
}

func (b *bareSteps) close() error { return b.mapping.Close() }

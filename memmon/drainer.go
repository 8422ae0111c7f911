package memmon

import (
	"os"

	"github.com/weft-fabric/weft/internal/sys"
)

// drainer tells the caches of events that were posted from C, or heard by a thread that is not Go's. It sleeps in the kernel.
type drainer struct {
	file *os.File
	done chan struct{}
}

func startDrainer(a *Arbiter) *drainer {
	f, err := sys.Pollable(a.events.wake.FD, "memory events")
	if err != nil {
		return nil // dead registrations are cleaned up at their next hit
	}
	d := &drainer{f, make(chan struct{})}
	go d.run(a)
	return d
}

func (d *drainer) run(a *Arbiter) {
	defer close(d.done)
	var b [8]byte
	for {
		if _, err := d.file.Read(b[:]); err != nil {
			return
		}
		a.drain()
	}
}

func (d *drainer) stop() {
	if d == nil {
		return
	}
	_ = d.file.Close()
	<-d.done
}

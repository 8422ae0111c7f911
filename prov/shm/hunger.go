package shm

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// A process that has no descriptors left can take no connection and no memory of a peer. That is not the peer's fault, who
// waits: what it has said stays in its socket, which is not watched for a while, since it would be readable all the time.
const (
	hungerTime  = 100 * time.Millisecond // until it is tried again
	starvedTime = 10 * time.Second       // then there is no hope, as where the system forbids it
)

// hunger is what waits for descriptors. There is a timer while anything does.
type hunger struct {
	hungry []hungry
	mute   bool // memory of ours is to be announced again
	retry  *time.Timer
}

// starvation is how long the next message of a socket has waited for descriptors.
type starvation struct{ since time.Time }

// hopeless is asked each time that there were none.
func (s *starvation) hopeless() bool {
	if s.since.IsZero() {
		s.since = time.Now()
	}
	return time.Since(s.since) > starvedTime
}

// ends is told when there were some.
func (s *starvation) ends() { s.since = time.Time{} }

// hungry is a socket that is not watched.
type hungry struct {
	fd    *sys.FD
	token uint64
}

// starve has a socket wait for descriptors. Locked.
func (d *domain) starve(fd *sys.FD, token uint64, err error) {
	d.warnOnce("descriptors", "this process has no descriptors left (RLIMIT_NOFILE): peers cannot be taken in, and what they send waits", err)
	if d.poller.Remove(fd) != nil { // it waits already
		return
	}
	d.hungry = append(d.hungry, hungry{fd, token})
	d.feedLater()
}

// announceLater has what could not be announced announced again: the kernel lets a user have only so many descriptors on their
// way, and has not always memory. Locked.
func (d *domain) announceLater(err error) {
	d.warnOnce("announce", "the system does not let us hand out memory: peers wait for it", err)
	d.mute = true
	d.feedLater()
}

func (d *domain) feedLater() {
	if d.retry == nil {
		d.retry = time.AfterFunc(hungerTime, d.feed)
	}
}

// feed has them tried again. Unlocked.
func (d *domain) feed() {
	d.core.Lock()
	defer d.core.Unlock()
	list := d.hungry
	d.hungry, d.retry = nil, nil
	for _, h := range list {
		s, ok := d.sources[h.token]
		if !ok || d.closed { // closed meanwhile
			continue
		}
		_ = d.poller.Add(h.fd, sys.Readable|sys.PeerClosed, h.token)
		if p, ok := s.(*pair); ok && p.jammed {
			d.wantWrite(h.fd, h.token, true)
		}
	}
	if d.mute && !d.closed {
		d.mute = false
		d.announce()
	}
	d.news.Store(true)
}

// endHunger ends the timer. Locked.
func (d *domain) endHunger() {
	if d.retry != nil {
		d.retry.Stop()
	}
	d.hungry, d.mute = nil, false
}

// famish ends a pair that cannot go on without what there are no descriptors for.
func (p *pair) famish(err error) {
	why := fmt.Errorf("%w: %w: no descriptors for what the peer has sent: %w", provider.ErrPeerGone, provider.ErrNoMemory, err)
	p.d.tell(slog.LevelWarn, "a peer is given up for want of descriptors", "peer", p.peer.text, "error", err)
	p.d.bury(p.peer, why)
	p.end(why, &refusal{code: refuseLimit, text: "no descriptors are left for what was sent"})
}

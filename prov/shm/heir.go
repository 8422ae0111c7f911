package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// A death is noticed before the kernel has freed the memory of the dead, and its sockets are closed after that: until then it
// has its name. Who wants the name meanwhile waits for the end of a connection to it.
const (
	heirTime = 10 * time.Second
	heirSays = 3 * time.Second // then the log has what is waited for
)

// openAfter opens an endpoint whose name was taken, as err says, as soon as the dying process that has it is gone. Of one that
// lives it says so at once. The lock is not held while it waits.
func (d *domain) openAfter(c provider.EndpointConfig, err error) (*endpoint, error) {
	ctx, cancel := context.WithTimeout(d.background, heirTime)
	defer cancel()
	for vain := false; ; {
		freed, there, why := d.outlast(ctx, socketName(d.uid, c.Name), err)
		if !there && d.opts.folder != "" {
			freed, there, why = d.outlast(ctx, folderName(d.opts.folder, c.Name), err)
		}
		if !freed && (there || vain) {
			return nil, why
		}
		vain = !freed // it has gone between the two looks
		ep, again := d.openEndpoint(c)
		if !errors.Is(again, syscall.EADDRINUSE) {
			return ep, again
		}
		err = again
	}
}

// outlast waits until the process that listens there has none of its sockets any more, if it is dying. If it is not waited
// for, or in vain, the name is not freed, and the error says what is known; there is whether somebody listens there.
func (d *domain) outlast(ctx context.Context, at sys.UnixAddress, err error) (freed, there bool, _ error) {
	sock, no := sys.ConnectUnix(at, sys.SeqPacket)
	if no != nil {
		return false, !errors.Is(no, syscall.ECONNREFUSED) && !errors.Is(no, syscall.ENOENT), err
	}
	defer sock.Close()
	cred, no := sock.Peer()
	if no != nil || cred.PID == os.Getpid() {
		return false, true, err
	}
	switch fate := sys.FateOf(cred.PID); {
	case fate == sys.FateGone:
		return false, false, err
	case fate == sys.FateExits || d.mourned(cred.PID):
	case fate == sys.FateUnknown:
		return false, true, fmt.Errorf("whose process cannot be seen from here, and may be dying: %w", err)
	default:
		return false, true, err
	}
	if no = d.waitEnd(ctx, sock, cred.PID); no != nil {
		return false, true, fmt.Errorf("process %d, which is dying (%w): %w", cred.PID, no, err)
	}
	return true, true, nil
}

// mourned says whether a process has been noticed to die.
func (d *domain) mourned(pid int) bool {
	d.core.Lock()
	defer d.core.Unlock()
	for _, p := range d.pairs {
		if p.pid == pid && p.dying() {
			return true
		}
	}
	return false
}

// waitEnd waits for the end of a connection on which nothing is said, and for no longer than the domain is open.
func (d *domain) waitEnd(ctx context.Context, sock sys.Socket, pid int) error {
	poller, err := sys.NewPoller()
	if err != nil {
		return err
	}
	defer poller.Close()
	if err := poller.Add(sock.FD, sys.Readable|sys.PeerClosed, 1); err != nil {
		return err
	}
	say := time.AfterFunc(heirSays, func() {
		d.log.Info("shm: the name of an endpoint is still that of a process that is dying; it is waited for", "process", pid, "most", heirTime)
	})
	defer say.Stop()
	var b [1]byte
	for {
		n, _, err := sock.Recv(b[:], 0)
		switch {
		case n > 0 || errors.Is(err, sys.ErrMessage):
			return errors.New("it lives: it has answered")
		case !errors.Is(err, sys.ErrWouldBlock):
			return nil
		}
		select {
		case <-d.ending:
			return provider.ErrClosed
		default:
		}
		if poller.Park(ctx, d.ending) != nil {
			return fmt.Errorf("its memory was not freed in %v", heirTime)
		}
	}
}

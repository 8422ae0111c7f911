package shm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

const (
	maxSocketName = 100 // bytes; the kernel has room for 107
	maxSocketPath = 107
	backlog       = 4096
)

// digest is a name of fixed length for one that is too long or not fit for a file.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// folderName is the socket of an endpoint in a folder, for processes of other network namespaces.
func folderName(folder, name string) sys.UnixAddress {
	return sys.UnixAddress{Name: filepath.Join(folder, "weft-"+digest(name)+".sock")}
}

// listener is a socket that an endpoint listens at.
type listener struct {
	ep    *endpoint
	sock  sys.Socket
	token uint64
	path  string // to remove; "" if there is none
}

// bind takes the endpoint's name.
func (ep *endpoint) bind() error {
	if err := ep.listenAt(socketName(ep.d.uid, ep.addr.name), ""); err != nil {
		return err
	}
	if ep.addr.path == "" {
		return nil
	}
	if !ep.d.tidied {
		ep.d.tidied = true
		tidy(ep.addr.path)
	}
	at := folderName(ep.addr.path, ep.addr.name)
	err := ep.listenAt(at, at.Name)
	if errors.Is(err, provider.ErrBusy) && stale(at) {
		err = ep.listenAt(at, at.Name)
	}
	if err != nil {
		ep.unlisten()
	}
	return err
}

// stale says whether the socket file was left behind by somebody who died, and removes it then: the next owner of the
// name, who cannot bind it, and peers who saw the death do so.
func stale(at sys.UnixAddress) bool {
	before, err := os.Lstat(at.Name)
	return err == nil && before.Mode().Type() == os.ModeSocket && ownerless(at) && removeSame(at.Name, before)
}

// ownerless says whether no socket belongs to the file any more. One that does is not disturbed: it is asked as a stream, which it is not,
// and the kernel says that, of one that does not listen yet, too.
func ownerless(at sys.UnixAddress) bool {
	sock, err := sys.ConnectUnix(at, sys.Stream)
	if err == nil {
		_ = sock.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// removeSame removes a socket file if it is still the one that was looked at: a successor may have taken the name meanwhile. It is moved
// aside first, where nobody replaces it between the look and the removal, and looked at once more: the kernel makes the file before
// it belongs to the socket, but nobody moves it in between.
func removeSame(name string, old os.FileInfo) bool {
	aside := filepath.Join(filepath.Dir(name), "weft-"+strconv.FormatUint(rand.Uint64(), 16)+".old")
	if err := os.Rename(name, aside); err != nil {
		return false
	}
	now, err := os.Lstat(aside)
	same := err == nil && os.SameFile(old, now) && old.ModTime().Equal(now.ModTime()) && // numbers of files are used again
		ownerless(sys.UnixAddress{Name: aside})
	if !same {
		_ = os.Link(aside, name) // back to where it was, unless a third one is there
	}
	_ = os.Remove(aside)
	return same
}

// tidy removes from a folder what processes have left there that ended without a close, and that no survivor knew.
func tidy(folder string) {
	list, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range list {
		if name := e.Name(); strings.HasPrefix(name, "weft-") && (strings.HasSuffix(name, ".sock") || strings.HasSuffix(name, ".old")) {
			stale(sys.UnixAddress{Name: filepath.Join(folder, name)})
		}
	}
}

func (ep *endpoint) listenAt(at sys.UnixAddress, path string) error {
	sock, err := sys.ListenUnix(at, sys.SeqPacket, backlog)
	if err != nil {
		return fmt.Errorf("name %q: %w", ep.addr.name, ep.listenError(err, path))
	}
	l := &listener{ep: ep, sock: sock, path: path}
	if path != "" {
		// Who may connect is decided by credentials; others need not even try.
		mode := os.FileMode(0o600)
		if ep.d.opts.anyUser || ep.d.opts.users != nil {
			mode = 0o666
		}
		err = os.Chmod(path, mode)
	}
	if err == nil {
		l.token, err = ep.d.watch(sock.FD, l)
	}
	if err != nil {
		l.close()
		return ep.listenError(err, path)
	}
	ep.listeners = append(ep.listeners, l)
	return nil
}

// listenError says of a socket in the folder that it is the folder that will not have it.
func (ep *endpoint) listenError(err error, path string) error {
	told := systemError(err)
	if path == "" || errors.Is(told, provider.ErrBusy) || errors.Is(told, provider.ErrNoMemory) {
		return told
	}
	return fmt.Errorf("option folder=%q: %w: %w", ep.addr.path, err, provider.ErrInvalid)
}

func (l *listener) close() {
	l.ep.d.unwatch(l.sock.FD, l.token)
	if l.path != "" {
		_ = os.Remove(l.path)
	}
	_ = l.sock.Close()
}

func (ep *endpoint) unlisten() {
	for _, l := range ep.listeners {
		l.close()
	}
	ep.listeners = nil
}

// ready takes connections.
func (l *listener) ready(sys.Events) {
	for range 64 { // the others are still there at the next poll
		sock, err := l.sock.Accept()
		if err != nil {
			if !errors.Is(err, sys.ErrWouldBlock) { // want of descriptors: the connection waits
				l.ep.d.starve(l.sock.FD, l.token, err)
			}
			return
		}
		l.ep.meet(sock)
	}
}

// stranger is a connection whose other side has not said who it is.
type stranger struct {
	ep    *endpoint
	sock  sys.Socket
	token uint64
	uid   uint32
	other bool // it is another process
	pid   int

	starved starvation

	// Of one that waits for the outcome of our own connection to the same peer.
	hello *hello
	fds   []*sys.FD
	pair  *pair
}

// meet takes a connection in. Who connects and says nothing holds a descriptor of ours, so there are not too
// many of them.
func (ep *endpoint) meet(sock sys.Socket) {
	if len(ep.strangers) >= maxStrangers {
		ep.strangers[0].close(refusal{code: refuseLimit, text: "too many connections that have said nothing"})
	}
	s := &stranger{ep: ep, sock: sock}
	cred, err := sock.Peer()
	if err == nil {
		s.token, err = ep.d.watch(sock.FD, s)
	}
	if err != nil {
		_ = sock.Close()
		return
	}
	s.uid, s.pid, s.other = cred.UID, cred.PID, isForeign(cred)
	ep.strangers = append(ep.strangers, s)
	s.ready(sys.Readable)
}

// close ends the connection, with a word why if there is one.
func (s *stranger) close(why refusal) {
	if why.code != 0 {
		_, _ = s.sock.Send(why.Append(nil))
		// Of a socket that is closed with something unread the other side hears that alone, and not the word.
		_, _, _ = s.sock.Recv(make([]byte, 1), 0)
	}
	s.leave()
	sys.CloseAll(s.fds)
	_ = s.sock.Close()
}

// leave takes it out of the list of strangers.
func (s *stranger) leave() {
	s.ep.d.unwatch(s.sock.FD, s.token)
	s.token = 0
	for i, other := range s.ep.strangers {
		if other == s {
			s.ep.strangers = append(s.ep.strangers[:i], s.ep.strangers[i+1:]...)
			break
		}
	}
	if s.pair != nil {
		s.pair.parked = nil
		s.pair = nil
	}
}

// ready reads the hello.
func (s *stranger) ready(sys.Events) {
	var b [maxMessage]byte
	n, fds, err := s.sock.Take(b[:], maxSegments+3)
	switch {
	case errors.Is(err, sys.ErrWouldBlock):
		return
	case errors.Is(err, sys.ErrDescriptors) && s.hello == nil:
		if s.starved.hopeless() {
			s.close(refusal{code: refuseLimit, text: fmt.Sprintf("no descriptors are left here (RLIMIT_NOFILE), for %v", starvedTime)})
		} else {
			s.ep.d.starve(s.sock.FD, s.token, err)
		}
		return
	case err != nil || s.hello != nil: // a second message before the answer, or the end
		sys.CloseAll(fds)
		s.close(refusal{})
		return
	}
	s.fds = fds
	kind, body, err := parseHead(b[:n])
	var h *hello
	if err == nil && kind != kindHello {
		err = fmt.Errorf("%w: message %d instead of a hello", errMessage, kind)
	}
	if err == nil {
		h, err = parseHello(kind, body)
	}
	if err != nil {
		s.close(refusal{code: refuseLayout, text: err.Error()})
		return
	}
	if why := s.check(h); why.code != 0 {
		s.close(why)
		return
	}
	s.hello = h
	s.ep.welcome(s)
}

// check says why the other side is refused; code 0 is none.
func (s *stranger) check(h *hello) refusal {
	ep := s.ep
	switch {
	case !ep.d.opts.allows(s.uid, ep.d.uid):
		return refusal{refuseUser, fmt.Sprintf("user %d is not allowed", s.uid)}
	case h.to != ep.addr.name || h.want != 0 && h.want != ep.inc:
		return refusal{refuseName, "the endpoint with this name is another one"}
	case h.inc == ep.inc || h.address(s.uid).agrees(ep.anyOfName()):
		return refusal{refuseName, "this is what the endpoint itself is called"}
	case h.boot != ep.d.boot:
		return refusal{refuseLayout, "another boot id"}
	case h.layout != ourLayout:
		return refusal{refuseLayout, fmt.Sprintf("memory layout %v, this side has %v", h.layout, ourLayout)}
	case len(s.fds) != h.descriptors():
		return refusal{refuseLayout, fmt.Sprintf("%d descriptors instead of %d", len(s.fds), h.descriptors())}
	}
	return refusal{}
}

// anyOfName is the endpoint's address without the incarnation: nobody else has it while the endpoint listens.
func (ep *endpoint) anyOfName() address {
	a := ep.addr
	a.inc = 0
	return a
}

// ourLayout is what both sides must have.
var ourLayout = layout{
	home: homeSize, lanes: lanesSize, control: controlSize, data: dataSize, hazards: hazardSlots, table: tableEntries,
	asks: maxAsked,
}

// descriptors is how many come with the hello.
func (h *hello) descriptors() int {
	n := 2 + len(h.segments)
	if h.features&hasBell != 0 {
		n++
	}
	return n
}

// welcome makes a pair with a stranger who has said who it is.
func (ep *endpoint) welcome(s *stranger) {
	h := s.hello
	p := ep.pairWith(h, s.uid)
	if p != nil && p.state == pairUp {
		// It has ended its side and calls anew, or lies. We have not heard of the end yet.
		p.catchUp()
		p = ep.pairWith(h, s.uid)
	}
	if p != nil && p.state == pairDialing {
		// Both have called. The call of the smaller incarnation counts; ours, if it does, may still fail, and then
		// this one is answered.
		if ep.inc < h.inc || ep.inc == h.inc {
			if p.parked != nil {
				s.close(refusal{code: refuseCrossing, text: "another connection waits already"})
				return
			}
			s.pair, p.parked = p, s
			return
		}
	} else if p != nil && p.state != pairNew {
		s.close(refusal{code: refuseCrossing, text: "there is a connection already"})
		return
	}
	if p == nil {
		var err error
		if p, err = ep.newcomer(h, s.uid); err != nil {
			s.close(refusal{code: refuseLimit, text: err.Error()})
			return
		}
	}
	s.adopt(p)
}

// adopt answers the hello, and the pair is up.
func (s *stranger) adopt(p *pair) {
	h, fds, sock := s.hello, s.fds, s.sock
	s.fds = nil
	s.leave()
	p.hangUp() // our own call, if there is one
	if err := p.prepare(); err != nil {
		p.d.warnOnce("take in", "a peer cannot be taken in (descriptors are bounded by RLIMIT_NOFILE)", err)
		sys.CloseAll(fds)
		_, _ = sock.Send(refusal{refuseLimit, err.Error()}.Append(nil))
		_ = sock.Close()
		p.end(err, nil)
		return
	}
	p.uid, p.pid, p.other = s.uid, s.pid, s.other
	if err := p.answer(h, fds, sock); err != nil {
		p.end(fmt.Errorf("%w: %w", provider.ErrPeerGone, err), nil)
	}
}

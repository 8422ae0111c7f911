package shm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

func init() { roles = append(roles, testutil.Role{Name: "attacker", Run: attackerMain}) }

// attacker is a process that shakes hands as it should, and then does what it should not. It is made of the
// provider's own parts, so that it gets as far as anybody can.
type attacker struct {
	rnd    *rand.Rand
	victim provider.Address
	at     sys.UnixAddress // where the victim listens
	key    uint64          // of memory of the victim's that is open for all
	keys   []uint64        // as a peer can read them
	lanes  *lanes          // for pairs that are to be
	lent   []*sys.FD       // one of each kind of descriptor that is none of a peer's
}

// attacks are what an attacker does, one round each. They end by themselves; what is open is closed by the caller. Errors do not
// matter: the victim may have hung up at any time.
var attacks = map[string]func(a *attacker, h *hostile){
	"scribbles":     (*attacker).scribbles,
	"words":         (*attacker).words,
	"bells":         (*attacker).bells,
	"full bell":     (*attacker).fullBell,
	"closed bells":  (*attacker).closedBells,
	"packets":       (*attacker).packets,
	"garbage":       (*attacker).garbage,
	"announcements": (*attacker).announcements,
	"descriptors":   (*attacker).descriptors,
	"hellos":        (*attacker).hellos,
	"strangers":     (*attacker).strangers,
	"hazards":       (*attacker).hazards,
	"messages":      (*attacker).messages,
	"requests":      (*attacker).requests,
	"alarms":        (*attacker).alarms,
}

func attackNames() []string { return slices.Sorted(maps.Keys(attacks)) }

// attackerMain is the process: name of the attack, address of the victim, seed, key.
func attackerMain(args []string) error {
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	a := &attacker{rnd: rand.New(rand.NewPCG(seed, 1)), victim: provider.Address(args[1])}
	if a.key, err = strconv.ParseUint(args[3], 10, 64); err != nil {
		return err
	}
	to, err := parseAddress(a.victim)
	if err != nil {
		return err
	}
	a.at = socketName(to.uid, to.name)
	if a.lanes, err = newLanes(sys.Features{}); err != nil {
		return err
	}
	if a.lent, err = wrongDescriptors(); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(over)
	}()
	for round := 0; ; round++ {
		if err := a.round(attacks[args[0]]); err != nil {
			return err
		}
		if round == 0 {
			fmt.Println("attacked")
		}
		select {
		case <-over:
			return nil
		default:
		}
	}
}

// hostile is a connected endpoint of the attacker's.
type hostile struct {
	d  *domain
	ep *endpoint
	to provider.Peer
	p  *pair
}

// round connects, attacks, and closes without a word.
func (a *attacker) round(attack func(*attacker, *hostile)) error {
	d, err := open(provider.Info{}, provider.DomainConfig{Progress: provider.Manual})
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq, Depth: maxDepth})
	if err != nil {
		return err
	}
	h := &hostile{d: d, ep: ep.(*endpoint)}
	if h.to, err = d.Insert(a.victim); err != nil {
		return err
	}
	if err := ep.Send(mk(make([]byte, 8), h.to, 1)); err != nil {
		return err
	}
	if h.connected() {
		h.p = d.pairs[0]
		a.keys = h.look()
		attack(a, h)
	}
	return d.Close()
}

// connected lets the handshake come to its end; false if the victim has no time.
func (h *hostile) connected() bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		h.progress()
		if len(h.d.pairs) == 1 && h.d.pairs[0].state == pairUp {
			return true
		}
		sys.Yield()
	}
	return false
}

func (h *hostile) progress() {
	h.d.core.Lock()
	h.d.core.Progress()
	h.d.core.Unlock()
}

// look reads the keys that the victim's table has: a peer sees them all.
func (h *hostile) look() (keys []uint64) {
	b := h.p.home.m.Bytes()
	for i := range tableEntries {
		if k := word(b, homeTable+i*entryLen).Load(); k != 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// number is a word that may do harm.
func (a *attacker) number() uint64 {
	switch a.rnd.IntN(6) {
	case 0:
		return a.rnd.Uint64N(100)
	case 1:
		return a.key
	case 2:
		return a.rnd.Uint64N(1<<20) * 64
	case 3:
		return ^a.rnd.Uint64N(1 << 16)
	case 4:
		return place(uint32(a.rnd.IntN(4)), a.rnd.IntN(1<<24))
	}
	return a.rnd.Uint64()
}

// scribbles puts records and words that are nearly right.
func (a *attacker) scribbles(h *hostile) {
	lanes, home := h.p.mine.m.Bytes(), h.d.home.m.Bytes()[:homeTable+64*entryLen]
	for i := range 200 {
		scribble(a.rnd, h.p, lanes, home, a.key, i)
		if i%10 == 0 {
			_ = h.p.peerBell.Ring()
		}
	}
}

// words writes every word that the victim reads, at any time, with no order.
func (a *attacker) words(h *hostile) {
	lanes, home := h.p.mine.m.Bytes(), h.d.home.m.Bytes()
	for range 20000 {
		switch a.rnd.IntN(5) {
		case 0:
			word(home, homeArmed).Store(a.number())
		case 1:
			word(home, homeTable+a.rnd.IntN(64*4)*8).Store(a.number())
		case 2:
			word(lanes, a.rnd.IntN(laneHazardsInUse/8+1)*8).Store(a.number())
		case 3:
			word(lanes, a.rnd.IntN(len(lanes)/8)*8).Store(a.number())
		case 4: // where the victim reads next
			word(lanes, []int{laneControl, laneData}[a.rnd.IntN(2)]+a.rnd.IntN(16)*8).Store(a.number())
		}
		if a.rnd.IntN(100) == 0 {
			_ = h.p.peerBell.Ring()
		}
	}
}

// bells rings without a reason, as fast as it can, and takes the victim's rings away.
func (a *attacker) bells(h *hostile) {
	for range 20000 {
		_ = h.p.peerBell.Ring()
		if a.rnd.IntN(10) == 0 {
			_, _ = h.p.peerBell.Drain()
		}
		h.d.home.armed.Add(1)
	}
}

// fullBell makes the victim's bell as full as it gets, and its own, which the victim rings.
func (a *attacker) fullBell(h *hostile) {
	full := binary.NativeEndian.AppendUint64(nil, ^uint64(0)-1)
	for range 2000 {
		_, _, _ = sys.WriteNow(uintptr(h.p.peerBell.Int()), full)
		_, _, _ = sys.WriteNow(uintptr(h.p.bell.Int()), full)
		h.d.home.armed.Store(a.rnd.Uint64() | 1)
		_ = h.ep.Send(mk(make([]byte, 8), h.to, 0))
	}
}

// closedBells closes its bell and half of its socket, and sleeps for ever.
func (a *attacker) closedBells(h *hostile) {
	_ = h.p.peerBell.Close()
	h.d.home.armed.Store(1)
	if a.rnd.IntN(2) == 0 {
		_ = syscall.Shutdown(h.p.sock.Int(), syscall.SHUT_RD)
	}
	for range 200 {
		h.d.home.armed.Add(2)
		_ = h.ep.Send(mk(make([]byte, 8), h.to, 0))
		sys.Yield()
	}
}

// packets rings by packets, as fast as the socket takes them, and reads nothing.
func (a *attacker) packets(h *hostile) {
	ring := seal(appendHead(nil, kindBell), 0)
	for range 50000 {
		if _, err := h.p.sock.Send(ring); errors.Is(err, sys.ErrWouldBlock) {
			sys.Yield()
		} else if err != nil {
			return
		}
	}
}

// garbage sends one message that is none.
func (a *attacker) garbage(h *hostile) {
	msgs := messages()
	b := slices.Clone(msgs[a.rnd.IntN(len(msgs))].wire)
	switch a.rnd.IntN(4) {
	case 0:
		b = b[:a.rnd.IntN(len(b))]
	case 1:
		b[a.rnd.IntN(len(b))] = byte(a.rnd.Uint32())
	case 2:
		b = make([]byte, a.rnd.IntN(maxMessage+100))
	}
	_, _ = h.p.sock.Send(b, a.some()...)
	h.p.ring()
}

// some are descriptors of any kind.
func (a *attacker) some() []*sys.FD {
	var fds []*sys.FD
	for range a.rnd.IntN(5) {
		fds = append(fds, a.lent[a.rnd.IntN(len(a.lent))])
	}
	return fds
}

// announcements tells of segments without end, large ones, and takes them back.
func (a *attacker) announcements(h *hostile) {
	next := uint32(1000)
	for range 1000 {
		var list announcement
		var fds []*sys.FD
		size := uint64(pageSize) << a.rnd.IntN(28)
		fd, err := sealed(int64(size), lengthSeals)
		if err != nil {
			return
		}
		for range maxSegments {
			list = append(list, segmentInfo{index: next, access: uint32(a.rnd.IntN(4)), size: size})
			fds = append(fds, fd)
			next++
		}
		_, err = h.p.sock.Send(list.Append(nil), fds...)
		_ = fd.Close()
		if a.rnd.IntN(3) == 0 && err == nil {
			var d drop
			for i := range list {
				d = append(d, list[i].index)
			}
			_, err = h.p.sock.Send(d.Append(nil))
		}
		if errors.Is(err, sys.ErrWouldBlock) {
			sys.Yield()
		} else if err != nil {
			return
		}
	}
}

// descriptors shakes hands, and announces, with what is no memory of the right kind.
func (a *attacker) descriptors(h *hostile) {
	wrong := a.lent[a.rnd.IntN(len(a.lent))]
	list := announcement{{index: uint32(a.rnd.IntN(8)), access: uint32(a.rnd.IntN(4)), size: pageSize << a.rnd.IntN(10)}}
	_, _ = h.p.sock.Send(list.Append(nil), wrong)
	sock, err := sys.ConnectUnix(a.at, sys.SeqPacket)
	if err != nil {
		return
	}
	fds := []*sys.FD{h.d.home.fd, a.lanes.fd, h.p.bell.FD}
	fds[a.rnd.IntN(3)] = wrong
	msg := a.hello(h, func(m *hello) { m.features = hasBell })
	_, _ = sock.Send(msg, fds...)
	_ = sock.Close()
}

// hello is one that is right, but for a change.
func (a *attacker) hello(h *hostile, change func(*hello)) []byte {
	to, _ := parseAddress(a.victim)
	m := hello{
		kind: kindHello, inc: a.rnd.Uint64() | 1, boot: h.d.boot, layout: ourLayout, uid: h.d.uid, net: h.d.net,
		from: strconv.FormatUint(a.rnd.Uint64(), 36), to: to.name,
	}
	if change != nil {
		change(&m)
	}
	return m.Append(nil)
}

// hellos shakes hands under a new name each time, and is gone.
func (a *attacker) hellos(h *hostile) {
	for range 50 {
		sock, err := sys.ConnectUnix(a.at, sys.SeqPacket)
		if err != nil {
			return
		}
		_, _ = sock.Send(a.hello(h, nil), h.d.home.fd, a.lanes.fd)
		if a.rnd.IntN(2) == 0 {
			sys.Yield()
		}
		_ = sock.Close()
	}
}

// strangers connects and says nothing, or half of something.
func (a *attacker) strangers(h *hostile) {
	var socks []sys.Socket
	for range 400 {
		sock, err := sys.ConnectUnix(a.at, sys.SeqPacket)
		if err != nil {
			break
		}
		socks = append(socks, sock)
		if b := a.hello(h, nil); a.rnd.IntN(3) == 0 {
			_, _ = sock.Send(b[:a.rnd.IntN(len(b)+1)], a.some()...)
		}
	}
	for _, s := range socks {
		_ = s.Close()
	}
}

// hazards says that it uses all of the victim's memory.
func (a *attacker) hazards(h *hostile) {
	for i := range hazardSlots {
		k := a.number()
		if i < len(a.keys) {
			k = a.keys[i]
		}
		h.p.mine.hazard(i).Store(k)
	}
	for range 100 {
		h.p.mine.inUse.Store([]uint64{hazardSlots, hazardSlots + 1, ^uint64(0), a.number()}[a.rnd.IntN(4)])
		_ = h.ep.Send(mk(make([]byte, 8), h.to, 0))
		sys.Yield()
	}
}

// messages sends what nobody waits for, of every kind, without end.
func (a *attacker) messages(h *hostile) {
	m, err := h.d.Alloc(100<<10, peerBoth)
	if err != nil {
		return
	}
	long := make([]byte, 200<<10)
	for i := range 5000 {
		o := provider.Op{Peer: h.to, Flags: provider.Quiet}
		switch i % 4 {
		case 0:
			o.Local.Bytes = long[:a.rnd.IntN(4096)]
		case 1:
			o.Local = provider.Segment{Bytes: m.Bytes(), Memory: m}
		case 2:
			o.Local.Bytes = long[:50000]
		case 3:
			o.Local.Bytes = long
		}
		if err := h.ep.Send(o); err != nil && !errors.Is(err, provider.ErrAgain) {
			return
		}
		if i%50 == 0 {
			h.progress()
		}
	}
}

// requests asks for more than it takes, and never looks at an answer.
func (a *attacker) requests(h *hostile) {
	for range 200000 {
		r := record{op: []uint8{opRead, opWrite, opAtomic}[a.rnd.IntN(3)], context: a.number(), words: [3]uint64{a.key, a.rnd.Uint64N(1 << 20), a.rnd.Uint64N(1 << 20)}}
		if r.op == opAtomic {
			const n = maxAtomic
			r.flags, r.payload = recResult, make([]byte, n)
			r.words[1], r.words[2] = 0, uint64(provider.AtomicSum)|uint64(provider.Uint64)<<8|n<<16
		}
		for {
			b, err := h.p.control.Reserve(recordLen(r.op, r.flags) + len(r.payload))
			if err == nil {
				r.put(b)
				h.p.control.Commit()
				h.p.control.Publish()
				h.p.ring()
				break
			}
			h.p.ring()
			if gone(h.p.sock) {
				return
			}
			sys.Yield()
		}
	}
}

// gone says whether the other side has closed a socket, and reads nothing of it.
func gone(s sys.Socket) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(s.Int(), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET) || n > 0 // a word why it was dropped
}

// alarms falls asleep and wakes all the time, so that the victim rings for every message.
func (a *attacker) alarms(h *hostile) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				h.d.home.armed.Add(1)
			}
		}
	}()
	for range 300 {
		_ = h.ep.Send(mk(make([]byte, 8), h.to, 0))
		sys.Yield()
	}
	close(stop)
	<-done
}

// own is the descriptor of a file, which is closed.
func own(f *os.File, err error) (*sys.FD, error) {
	if err != nil {
		return nil, err
	}
	fd, err := another(int(f.Fd()))
	return fd, errors.Join(err, f.Close())
}

// another is a duplicate of somebody else's descriptor.
func another(n int) (*sys.FD, error) {
	theirs := sys.NewFD(n, "somebody's")
	defer theirs.Disown()
	return theirs.Dup()
}

// sealed is a memory file with some seals.
func sealed(n int64, s sys.Seals) (*sys.FD, error) {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "hostile", Size: n})
	if err != nil {
		return nil, err
	}
	return fd, sys.Seal(fd, s)
}

// wrongDescriptors opens one of each kind that no peer should send. They stay open as long as the process.
func wrongDescriptors() (fds []*sys.FD, err error) {
	keep := func(fd *sys.FD, e error) {
		if e == nil && fd != nil {
			fds = append(fds, fd)
		}
		err = errors.Join(err, e)
	}
	for _, path := range []string{"/", "/dev/null", "/dev/zero", "/proc/self/mem", "/proc/self/status"} {
		keep(own(os.Open(path)))
	}
	poller, e := sys.NewPoller()
	if e == nil {
		keep(another(poller.Fd()))
		e = poller.Close()
	}
	err = errors.Join(err, e)
	r, w, e := os.Pipe()
	keep(own(r, e))
	keep(own(w, e))
	l, e := sys.ListenUnix(sys.UnixAddress{Name: "weft-hostile-" + strconv.Itoa(os.Getpid()), Abstract: true}, sys.SeqPacket, 1)
	keep(l.FD, e)
	udp, e := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if e == nil {
		keep(own(udp.File()))
		e = udp.Close()
	}
	err = errors.Join(err, e)
	bell, e := sys.NewEventfd(sys.Features{})
	keep(bell.FD, e)
	// A file on disk, long enough, that its owner can cut at any time.
	dir, e := os.MkdirTemp("", "weft")
	if e != nil {
		return fds, errors.Join(err, e)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	disk, e := own(os.Create(filepath.Join(dir, "f")))
	if e == nil {
		e = sys.Truncate(disk, homeSize)
	}
	keep(disk, e)
	// Memory without the seals, or with too few, or too short, or too long.
	for _, n := range []int64{homeSize, lanesSize} {
		for _, s := range []sys.Seals{0, sys.SealShrink, sys.SealGrow, sys.SealSeal} {
			keep(sealed(n, s))
		}
	}
	for _, n := range []int64{0, 1, pageSize, lanesSize - pageSize, lanesSize + 1, homeSize + pageSize, 1 << 40} {
		keep(sealed(n, lengthSeals))
	}
	return fds, err
}

package memmon

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"weak"

	"github.com/weft-fabric/weft/internal/sys"
)

// Proof can say at any time whether memory is still what it was when the proof was made. Valid and Hold take no lock, and are safe for
// concurrent use; Close comes once, after them.
type Proof interface {
	// Valid is false from the moment on at which the memory may be something else, and never true again. It is also false
	// when nobody can tell.
	Valid() bool
	// Changed is true if the memory is known to have become other memory, so that what was done with it is not to be trusted. After
	// a false Valid, false means that nobody can tell.
	Changed() bool
	// Hold is Valid, and returns what keeps the memory alive as long as the caller has it; nil if nothing is needed.
	Hold() (any, bool)
	// Close ends the proof.
	Close()
}

// Prove makes a proof for memory as it is now; a monitor answers only while a cache is attached. Make it before the memory is registered: what happens meanwhile then counts.
// A proof is of the memory alone: Disable and Flush leave it valid, a cache asks Enabled and compares Epoch.
//
// It fails with [ErrNotHeap], with [ErrDevice] for memory of a device that a monitor was asked for, and with [ErrUnanswered] where nobody can tell: such memory is not to be cached.
func (a *Arbiter) Prove(k Kind) (Proof, error) {
	if k == nil || len(k.Bytes()) == 0 {
		return nil, fmt.Errorf("no memory: %w", ErrUnanswered)
	}
	switch who := k.source().(type) {
	case ofHeap:
		return a.proveHeap(k.Bytes())
	case ofMonitor:
		return a.proveWatched(k.Bytes())
	case Owner:
		return &numbered{who, who.Generation()}, nil
	}
	return nil, ErrUnanswered
}

// numbered is the proof of memory whose owner has a number.
type numbered struct {
	owner Owner
	gen   uint64
}

func (p *numbered) Valid() bool       { return p.owner.Generation() == p.gen }
func (p *numbered) Changed() bool     { return !p.Valid() }
func (p *numbered) Hold() (any, bool) { return nil, p.Valid() }
func (p *numbered) Close()            {}

// living is the proof of an object of the Go heap: memory that somebody holds is not used again. A weak pointer is nil as soon as it may be; the
// cleanup runs any time later, and only tells the caches.
type living struct {
	object  weak.Pointer[byte]
	cleanup runtime.Cleanup
}

func (a *Arbiter) proveHeap(b []byte) (Proof, error) {
	is, err := sys.OfGoHeap(b)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
	case !is:
		return nil, notHeap(b)
	}
	r := RangeOf(b[:cap(b)])
	return &living{weak.Make(&b[0]), runtime.AddCleanup(&b[0], a.tell, r)}, nil
}

func (p *living) Valid() bool { return p.object.Value() != nil }

func (p *living) Changed() bool { return !p.Valid() }

func (p *living) Hold() (any, bool) {
	o := p.object.Value()
	return o, o != nil
}

func (p *living) Close() { p.cleanup.Stop() }

// observed is the proof of memory that the monitor sees.
type observed struct {
	a                   *Arbiter
	s                   *serving
	watch               Watch
	r                   Range
	seen, lost, touched atomic.Uint64 // the trail of the events. They may be of several trails: each is right by itself
	sure                uint64        // the trail's
	said                atomic.Uint32 // the answer that Valid has given last; a bad one stays
}

func (a *Arbiter) proveWatched(b []byte) (Proof, error) {
	s := a.serving.Load()
	if s == nil {
		return nil, a.unserved()
	}
	// The runtime gives pages of its heap back by calls of its own, of which hooks in the C library know nothing.
	switch is, err := sys.OfGoHeap(b); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
	case is:
		return nil, fmt.Errorf("memory of the Go heap that is said to be mapped: %w", ErrUnanswered)
	}
	p, err := a.observe(s, RangeOf(b).Rounded(uint64(pageSize)))
	if err != nil {
		return nil, err
	}
	// Only now: memory that is mapped over between the question and the watch would be taken for what was there before.
	if err := s.answers(p.r); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// unserved is why no monitor answers.
func (a *Arbiter) unserved() error {
	switch s := a.Status(); {
	case s.Why != nil:
		return fmt.Errorf("the monitor %s has failed: %w: %w", s.Monitor, ErrUnanswered, s.Why)
	case s.Monitor != nameOf(nil):
		return fmt.Errorf("the monitor %s is %v: %w", s.Monitor, s.State, ErrUnanswered)
	}
	return fmt.Errorf("mapped memory without an owner, and no monitor: %w", ErrUnanswered)
}

// answers says whether the monitor sees all that can happen to the memory that lies there.
func (s *serving) answers(r Range) error {
	class, err := classOf(r)
	if errors.Is(err, ErrDevice) {
		return fmt.Errorf("%v: %w", r, err)
	}
	if err != nil {
		return fmt.Errorf("%v: %w: %w", r, ErrUnanswered, err)
	}
	switch all, misses := s.coverage.Answers(class); {
	case all:
		return nil
	case misses == nil:
		return fmt.Errorf("%s does not watch %v: %w", s.monitor.Name(), class, ErrUnanswered)
	default:
		return fmt.Errorf("%s does not see %v of %v: %w", s.monitor.Name(), misses, class, ErrUnanswered)
	}
}

// observe begins to look at whole pages.
func (a *Arbiter) observe(s *serving, r Range) (made *observed, err error) {
	t := a.events.start(r)
	p := &observed{a: a, s: s, r: r, sure: t.sure}
	p.seen.Store(t.seen)
	p.lost.Store(t.lost)
	p.touched.Store(t.touched)
	a.events.want(r, 1)
	defer func() {
		if made == nil { // also if the monitor panics
			a.events.want(r, -1)
		}
	}()
	p.watch, err = s.monitor.Watch(r)
	switch {
	case err != nil:
	case p.watch == nil:
		err = errNoWatch
	default:
		if err = s.monitor.Err(); err == nil {
			return p, nil
		}
		p.watch.Close()
	}
	return nil, fmt.Errorf("%s: %v: %w: %w", s.monitor.Name(), r, ErrUnanswered, err)
}

var errNoWatch = errors.New("the monitor gave nothing to ask")

// Valid asks the monitor, and the events before that and after: the monitor's answer may be of a moment before one that was told meanwhile.
func (p *observed) Valid() bool { return p.ask() == same }

// Changed asks once more: what nobody could tell a moment ago is mostly known now.
func (p *observed) Changed() bool {
	if answer(p.said.Load()) == unsure {
		p.said.CompareAndSwap(uint32(unsure), uint32(p.again()))
	}
	return answer(p.said.Load()) == changed
}

// ask asks, unless the answer was a bad one before: it stays so.
func (p *observed) ask() answer {
	if a := answer(p.said.Load()); a != same {
		return a
	}
	a := p.all()
	if a != same {
		p.said.CompareAndSwap(uint32(same), uint32(a))
	}
	return a
}

func (p *observed) all() answer {
	if p.s.over.Load() {
		return unsure
	}
	a := p.told()
	if a != changed {
		a = max(a, seenBy(p.watch))
	}
	if a != changed {
		a = max(a, p.told())
	}
	return a
}

// seenBy is the monitor's answer. Of Weft's own it is asked in one call: others who ask the same watch at the same time are told something else.
func seenBy(w Watch) answer {
	if w, ok := w.(interface{ ask() answer }); ok {
		return w.ask()
	}
	if w.Valid() {
		return same
	}
	return changed
}

// again is the answer of somebody who was unsure: nothing makes it same.
func (p *observed) again() answer { return max(p.all(), unsure) }

// told is what the events say.
func (p *observed) told() answer {
	t := trail{p.seen.Load(), p.lost.Load(), p.touched.Load(), p.sure}
	now, a := p.a.events.look(t, p.r)
	if a == same && now != t {
		p.seen.CompareAndSwap(t.seen, now.seen)
		p.lost.CompareAndSwap(t.lost, now.lost)
		p.touched.CompareAndSwap(t.touched, now.touched)
	}
	return a
}

func (p *observed) Hold() (any, bool) { return nil, p.Valid() }

func (p *observed) Close() {
	p.watch.Close()
	p.a.events.want(p.r, -1)
}

var errMixed = errors.New("it is memory of several classes, or not all of it is mapped")

// classLooks is how often the list of mappings is read: what others map and unmap meanwhile may push an entry out of it.
const classLooks = 4

var mappingsOf = sys.MappingsOf // another one in tests

// classOf asks the kernel what the range is.
func classOf(r Range) (class Memory, err error) {
	for range classLooks {
		var list []sys.MappingInfo
		if list, err = mappingsOf(r.Addr, r.Len); err == nil {
			class, err = classOfAll(list, r)
		}
		if err == nil || errors.Is(err, ErrDevice) {
			break
		}
	}
	return class, err
}

// classOfAll is the class of what is mapped in a range, by address. Of a hole nothing is told when memory comes to lie there, so there must be none.
func classOfAll(list []sys.MappingInfo, r Range) (Memory, error) {
	class := numMemories
	for _, m := range list {
		if ofDevice(m) {
			return 0, fmt.Errorf("%s: %w", m.File, ErrDevice)
		}
		c := classify(m)
		if class != numMemories && c != class {
			return 0, errMixed
		}
		class = c
	}
	if !sys.Gapless(list, r.Addr, r.Len) {
		return 0, errMixed
	}
	return class, nil
}

// ofDevice says whether a mapping is of a device: a file of /dev but those that are memory of the kernel's own, or a dmabuf.
func ofDevice(m sys.MappingInfo) bool {
	if strings.HasPrefix(m.File, "/dmabuf:") {
		return true
	}
	name, ok := strings.CutPrefix(m.File, "/dev/")
	return ok && name != "zero" && !strings.HasPrefix(name, "zero ") && !strings.HasPrefix(name, "shm/") && !strings.HasPrefix(name, "hugepages")
}

func classify(m sys.MappingInfo) Memory {
	switch {
	case m.SystemV:
		return SystemV
	case m.Shared:
		return Shared
	case m.File != "":
		return File
	case m.Data:
		return Data
	}
	return Private
}

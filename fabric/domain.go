package fabric

import (
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// Domain is an open provider: the owner of endpoints, queues, counters, memory, and of what is known of peers.
type Domain struct {
	inner provider.Domain
	name  string // of the provider
	check checker
	trust bool // the provider is a MemoryChecker

	// memories has the provider's handle of each registration that is open. It is asked at each post that names one.
	memories sync.Map // provider.Memory -> *Memory

	mu       sync.Mutex
	closed   bool
	opening  sync.WaitGroup // children that are being opened: Close waits for them, and then has them all
	queues   map[*CompletionQueue]struct{}
	counters map[*Counter]struct{}
	ends     map[*Endpoint]struct{}

	closing  sync.Once
	closeErr error
}

// OpenDomain opens what Discover has described.
func OpenDomain(info Info, c DomainConfig) (*Domain, error) {
	list, err := chosen(info.Provider)
	if err != nil {
		return nil, err
	}
	if info.Provider == "" {
		return nil, invalid("the info names no provider: take one of Discover")
	}
	return OpenDomainIn(list[0], info, c)
}

// OpenDomainIn is OpenDomain for a provider that is not linked under a name, such as one that package prov/hook has
// wrapped. info must be of that provider.
func OpenDomainIn(p provider.Provider, info Info, c DomainConfig) (*Domain, error) {
	fail := func(err error) error { return asOpError("open domain", p.Name(), "", err) }
	switch {
	case info.Provider != p.Name():
		return nil, fail(invalid("the info is of provider %q", info.Provider))
	case !info.Usable && info.Why == "":
		return nil, fail(invalid("the info says that it cannot be used, and not why: take one of Discover"))
	case !info.Usable:
		return nil, fail(fmtNotSupported(info.Why))
	case c.Progress != Auto && c.Progress != Manual:
		return nil, fail(invalid("no progress mode has the number %d", uint8(c.Progress)))
	case !slices.Contains(info.Progress, c.Progress):
		return nil, fail(fmtNotSupported("the provider has no " + c.Progress.String() + " progress"))
	}
	inner, err := p.OpenDomain(info, c)
	if err != nil {
		return nil, fail(err)
	}
	d := &Domain{
		inner: inner, name: p.Name(),
		queues: make(map[*CompletionQueue]struct{}), counters: make(map[*Counter]struct{}), ends: make(map[*Endpoint]struct{}),
	}
	_, d.trust = inner.(provider.MemoryChecker)
	opened := inner.Info()
	d.check = newChecker(d, &opened)
	return d, nil
}

// Info is what was opened, as it is now.
func (d *Domain) Info() Info { return d.inner.Info() }

// OpenCompletionQueue makes a queue for the completions of any number of endpoints.
func (d *Domain) OpenCompletionQueue(c CQConfig) (*CompletionQueue, error) {
	const op = "open completion queue"
	if c.Size < 0 {
		return nil, d.fail(op, invalid("size %d", c.Size))
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.opening.Done()
	inner, err := d.inner.OpenCompletionQueue(c)
	if err != nil {
		return nil, d.fail(op, err)
	}
	q := &CompletionQueue{domain: d, inner: inner, reads: d.endings("read completions"), waits: d.endings("wait for completions")}
	adopt(d, d.queues, q)
	return q, nil
}

// OpenCounter makes a counter for any number of endpoints.
func (d *Domain) OpenCounter() (*Counter, error) {
	const op = "open counter"
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.opening.Done()
	inner, err := d.inner.OpenCounter()
	if err != nil {
		return nil, d.fail(op, err)
	}
	c := &Counter{domain: d, inner: inner, waits: d.endings("wait for counter")}
	adopt(d, d.counters, c)
	return c, nil
}

// Insert makes a peer of an address. It connects nothing, and does not know whether anybody is there. The same
// address gives the same peer until it is removed or gone; a peer that has died keeps its number, and its address inserted again is a new one.
func (d *Domain) Insert(a Address) (Peer, error) {
	if a == "" {
		return 0, d.fail("insert", invalid("the address is empty"))
	}
	p, err := d.inner.Insert(a)
	return p, asOpError("insert", d.name, a, err)
}

// Address is the address of a peer.
func (d *Domain) Address(p Peer) (Address, error) {
	a, err := d.inner.Address(p)
	return a, d.fail("address", err)
}

// Remove forgets a peer. What is outstanding towards it ends with ErrCancelled, Directed receives among it. The number is not used
// again: one who goes on sending comes back as a peer with a new number, and its address inserted again gives a new one.
func (d *Domain) Remove(p Peer) error {
	return d.failPeer("remove", p, d.inner.Remove(p))
}

// Alloc gets n bytes of arena memory, zeroed, aligned to 64 bytes and to pages from 64 KiB on. Peers on the node reach
// it without any help of this process. The memory is the caller's until it closes it; operations that were posted on it keep it
// for themselves until they end. It fails with ErrNotSupported (no arena), ErrInvalid (n or a), ErrNoMemory (DomainConfig.Memory, or what the
// system has) and ErrClosed.
func (d *Domain) Alloc(n int, a Access) (*Memory, error) {
	const op = "allocate"
	switch {
	case !d.check.caps.Has(Arena):
		return nil, d.fail(op, fmtNotSupported("the provider has no arena: Register memory of your own"))
	case n <= 0:
		return nil, d.fail(op, invalid("%d bytes", n))
	}
	if err := checkAccess(a); err != nil {
		return nil, d.fail(op, err)
	}
	return d.keep(op, func() (provider.Memory, error) { return d.inner.Alloc(n, a) })
}

// Register lets peers use memory that the program has. It stays the program's to keep alive, as its kind says. It fails with
// ErrInvalid (no memory, mapped memory without an owner, HeapBytes that are not of the Go heap: also memmon.ErrNotHeap), ErrNoMemory (too many registrations), ErrNotSupported and ErrClosed.
func (d *Domain) Register(k memmon.Kind, a Access) (*Memory, error) {
	const op = "register"
	if err := errors.Join(checkKind(k), checkAccess(a)); err != nil {
		return nil, d.fail(op, err)
	}
	return d.keep(op, func() (provider.Memory, error) { return d.inner.Register(k, a) })
}

// checkKind refuses memory of which nobody could tell, for as long as it is registered, whether it is still there. What is of the Go heap is held, and
// not asked again when a peer wants it: memory of other origin could be unmapped by then, and to touch that ends the process.
func checkKind(k memmon.Kind) error {
	if !memmon.Answered(k) || len(k.Bytes()) == 0 {
		return invalid("no memory, or mapped memory without an owner")
	}
	if err := memmon.Check(k); err != nil {
		return invalid("%w: a global variable, or mapped memory, which needs an owner", err)
	}
	return nil
}

func checkAccess(a Access) error {
	if odd := a &^ (PeerRead | PeerWrite); odd != 0 {
		return invalid("no access is called %v", odd)
	}
	return nil
}

// keep wraps the memory that open makes.
func (d *Domain) keep(op string, open func() (provider.Memory, error)) (*Memory, error) {
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.opening.Done()
	inner, err := open()
	if err != nil {
		return nil, d.fail(op, err)
	}
	m := &Memory{domain: d, inner: inner}
	d.memories.Store(inner, m)
	return m, nil
}

// owns checks that a segment is of memory of this domain that is open.
func (d *Domain) owns(s *Segment) error {
	switch m := s.Memory.(type) {
	case *outside:
		return m.why
	case *Memory:
		return invalid("a segment of registered memory is made by Memory.Slice")
	}
	if d.trust {
		return nil
	}
	if _, ok := d.memories.Load(s.Memory); ok {
		return nil
	}
	return invalid("the memory of a segment was closed, or is of another domain")
}

// View maps n bytes of a peer's arena from offset on, to be read in place. It connects to the peer if need be, which is what
// the context bounds, from an endpoint of this domain: without an open one the error is ErrInvalid, as it is for a peer that is not known.
// Where the peer's memory cannot be mapped, the error is ErrNotSupported: Read copies instead. Release views: one that is never released
// keeps the peer's memory mapped, and what the connection holds, even after the domain has closed.
func (d *Domain) View(ctx context.Context, p Peer, k Key, offset uint64, n int) (*View, error) {
	const op = "view"
	if ctx == nil {
		return nil, d.failPeer(op, p, errNoContext)
	}
	if !d.check.caps.Has(Views) {
		return nil, d.fail(op, fmtNotSupported("the provider has no views: Read copies instead"))
	}
	switch _, carry := bits.Add64(offset, uint64(max(n, 0)), 0); {
	case p == 0:
		return nil, d.fail(op, invalid("no peer: 0 is none, Insert makes one of an address"))
	case n < 0 || carry != 0:
		return nil, d.failPeer(op, p, invalid("%d bytes from offset %d on", n, offset))
	}
	inner, err := d.inner.View(ctx, p, k, offset, n)
	if err != nil {
		return nil, d.failPeer(op, p, err)
	}
	return &View{inner: inner}, nil
}

// Stats are numbers since the domain was opened. They may be read at any time.
func (d *Domain) Stats() Stats { return d.inner.Stats() }

// Peers lists what is known of each peer.
func (d *Domain) Peers() []PeerStats { return d.inner.Peers() }

// Close closes endpoints, memory, counters and queues of the domain, in this order, and then the domain. Every wait ends with
// ErrClosed; views stay readable until they are released. More than once is harmless: the later calls wait for the first.
func (d *Domain) Close() error {
	d.closing.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
		d.opening.Wait()
		d.mu.Lock()
		ends, counters, queues := slices.Collect(maps.Keys(d.ends)), slices.Collect(maps.Keys(d.counters)), slices.Collect(maps.Keys(d.queues))
		d.mu.Unlock()
		var errs []error
		for _, e := range ends {
			errs = append(errs, e.Close())
		}
		d.memories.Range(func(_, m any) bool {
			errs = append(errs, m.(*Memory).Close())
			return true
		})
		for _, c := range counters {
			errs = append(errs, c.Close())
		}
		for _, q := range queues {
			errs = append(errs, q.Close())
		}
		errs = append(errs, d.fail("close domain", d.inner.Close()))
		d.closeErr = errors.Join(errs...)
	})
	return d.closeErr
}

// begin starts to open a child, unless the domain has closed. Who gets no error calls d.opening.Done.
func (d *Domain) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return closed("domain")
	}
	d.opening.Add(1)
	return nil
}

// adopt notes a child of the domain.
func adopt[T comparable](d *Domain, set map[T]struct{}, child T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set[child] = struct{}{}
}

// forget is the opposite of adopt.
func forget[T comparable](d *Domain, set map[T]struct{}, child T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(set, child)
}

package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/weft-fabric/weft/fabric"
)

// providerName is the one that is used: it alone has memory that the node's processes can map.
const providerName = "shm"

// ErrNotLinked is why Open fails in a program that does not want the plane: it has not imported the provider.
var ErrNotLinked = errors.New(`the program does not link it: import _ "github.com/weft-fabric/weft/prov/` + providerName + `"`)

// Config says how a Fabric is to be. The zero value works.
type Config struct {
	Logger *slog.Logger // hears of what a person should know, from a goroutine of its own; nil discards
	// Memory is the most bytes of arenas, 64 KiB of them for the probe; 0 means no bound. The provider gives memory that
	// was freed back to the system only when the bound is reached.
	Memory   uint64
	Progress fabric.Progress   // with fabric.Manual, peers reach this process only while one of its calls waits
	Options  map[string]string // of the provider shm: docs/prov/shm.md

	// Endpoint says how the endpoint for messages is to be, both of whose directions use q; nil: nobody uses it. See Messages.
	Endpoint func(q *fabric.CompletionQueue) fabric.EndpointConfig

	// Open makes the domain, which is the Fabric's to close; nil opens the provider shm as it is linked. Tests put a hook around it.
	Open func(fabric.DomainConfig) (*fabric.Domain, error)
}

// Fabric is what the streams of a session share.
type Fabric struct {
	domain  *fabric.Domain
	end     *fabric.Endpoint
	queue   *fabric.CompletionQueue
	contact string
	say     *sayer // nil without a logger

	mu     sync.Mutex
	closed bool
	out    int // memories that are not freed
	peers  map[Contact]*Peer
	tried  map[fabric.Peer]int // numbers that were inserted, and by how many they are being tried

	closing  sync.Once
	closeErr error
}

// Open opens the provider. The error says why that does not work in this process: fabric.ErrNotSupported (what the process lacks, ErrNotLinked among it;
// also when there are too few descriptors to see that), fabric.ErrNoMemory (descriptors or memory), fabric.ErrInvalid (options that make no
// sense), and the context's error. It takes about a millisecond, and waits for no other process.
func Open(ctx context.Context, c Config) (*Fabric, error) {
	f := &Fabric{peers: make(map[Contact]*Peer), tried: make(map[fabric.Peer]int)}
	config := fabric.DomainConfig{Progress: c.Progress, Memory: c.Memory, Options: c.Options}
	if c.Logger != nil {
		h := detach(c.Logger)
		config.Logger, f.say = slog.New(h), h.say
	}
	open := c.Open
	if open == nil {
		info, err := discover(ctx, providerName)
		if err != nil {
			return nil, fmt.Errorf("native: %w", err)
		}
		open = func(c fabric.DomainConfig) (*fabric.Domain, error) { return fabric.OpenDomain(info, c) }
	}
	var err error
	if f.domain, err = open(config); err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	if err := f.listen(c); err != nil {
		return nil, errors.Join(fmt.Errorf("native: %w", err), f.Close())
	}
	return f, nil
}

// discover finds what is to be opened.
func discover(ctx context.Context, name string) (fabric.Info, error) {
	infos, err := fabric.Discover(ctx, fabric.Hints{Provider: name})
	switch {
	case err == nil:
		return infos[0], nil
	case ctx.Err() == nil && !errors.Is(err, fabric.ErrNotSupported): // which would be a provider that is there
		return fabric.Info{}, fmt.Errorf("provider %s: %w: %w", name, ErrNotLinked, fabric.ErrNotSupported)
	}
	return fabric.Info{}, err
}

// listen makes the endpoint and the probe, and with them the contact.
func (f *Fabric) listen(c Config) error {
	q, err := f.domain.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		return err
	}
	f.queue = q
	config := fabric.EndpointConfig{Send: q, Recv: q}
	if c.Endpoint != nil {
		config = c.Endpoint(q)
	}
	if f.end, err = f.domain.OpenEndpoint(config); err != nil {
		return err
	}
	probe, err := f.domain.Alloc(nonceSize, fabric.PeerRead)
	if err != nil {
		return err
	}
	contact := Contact{Address: f.end.Address(), Key: probe.Key()}
	_, _ = rand.Read(contact.Nonce[:]) // never fails
	copy(probe.Bytes(), contact.Nonce[:])
	f.contact = string(contact.Append(nil))
	return nil
}

// Contact is what others reach this process by, for Reach; its form is that of type Contact.
func (f *Fabric) Contact() string { return f.contact }

// Messages is what messages between the processes go by: whoever was meant by Config.Endpoint posts on the endpoint and reads its queue, and nobody
// else. They end with Close.
func (f *Fabric) Messages() (*fabric.Domain, *fabric.Endpoint, *fabric.CompletionQueue) {
	return f.domain, f.end, f.queue
}

// Stats are numbers of the domain since it was opened; nobody but the Fabric uses it.
func (f *Fabric) Stats() fabric.Stats { return f.domain.Stats() }

// Close ends the connections, and then the domain. Views stay readable until they are released, and memory of Alloc is the program's
// until it frees it: the domain closes with the last of it. What others have views of stays theirs. More than once is harmless.
func (f *Fabric) Close() error {
	f.closing.Do(func() {
		f.mu.Lock()
		f.closed = true
		last := f.out == 0
		f.mu.Unlock()
		if f.end != nil {
			f.closeErr = f.end.Close()
		}
		if last {
			f.closeErr = errors.Join(f.closeErr, f.domain.Close())
		}
		if f.say != nil {
			f.say.wait()
		}
	})
	return f.closeErr
}

// Linked is nil if the program links the provider, so that Open may succeed.
func Linked(ctx context.Context) error {
	_, err := discover(ctx, providerName)
	if errors.Is(err, ErrNotLinked) {
		return err
	}
	return nil
}

package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// fault is a way to break a provider that one group must notice.
type fault struct {
	group string
	name  string
	make  func(t testing.TB) *mutant // t ends when the group has run
	mode  provider.Progress
}

// on makes a mutant that changes completions of these kinds.
func on(change func(c *provider.Completion), kinds ...provider.Kind) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		return &mutant{done: func(c *provider.Completion) int {
			for _, k := range kinds {
				if c.Kind == k {
					change(c)
				}
			}
			return 1
		}}
	}
}

// nth delivers completion n of a kind the given number of times.
func nth(n int32, kind provider.Kind, times int) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		var seen atomic.Int32
		return &mutant{done: func(c *provider.Completion) int {
			if c.Kind == kind && c.Err == nil && seen.Add(1) == n {
				return times
			}
			return 1
		}}
	}
}

// posts makes a mutant that changes operations before they are posted.
func posts(change func(k provider.Kind, op *provider.Op)) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		return &mutant{post: func(p *posting) error {
			change(p.kind, &p.op)
			return p.forward(p.op)
		}}
	}
}

// delays makes a mutant that posts some operations a little later, behind the caller's back.
func delays(which func(k provider.Kind, op *provider.Op) bool) func(testing.TB) *mutant {
	return func(t testing.TB) *mutant {
		var late sync.WaitGroup
		t.Cleanup(late.Wait)
		return &mutant{post: func(p *posting) error {
			if !which(p.kind, &p.op) {
				return p.forward(p.op)
			}
			late.Go(func() {
				pause(5 * time.Millisecond)
				_ = p.forward(p.op)
			})
			return nil
		}}
	}
}

// keepsBack makes a mutant in which some operations are so late that they are never seen.
func keepsBack(which func(k provider.Kind, op *provider.Op) bool) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		return &mutant{post: func(p *posting) error {
			if which(p.kind, &p.op) {
				return nil
			}
			return p.forward(p.op)
		}}
	}
}

// replaces makes a mutant in which one error is another.
func replaces(old, with error) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		return &mutant{done: func(c *provider.Completion) int {
			if errors.Is(c.Err, old) {
				c.Err = with
			}
			return 1
		}}
	}
}

// turned makes a mutant whose errors of one kind say things in the other order.
func turned(which error) func(testing.TB) *mutant {
	format := "so it is: %w"
	if which == provider.ErrKey {
		format = "%w: so it is"
	}
	return func(testing.TB) *mutant {
		return &mutant{done: func(c *provider.Completion) int {
			if oe, ok := errors.AsType[*provider.OpError](c.Err); ok && errors.Is(c.Err, which) {
				said := *oe
				said.Err = fmt.Errorf(format, which)
				c.Err = &said
			}
			return 1
		}}
	}
}

// corrupts makes a mutant that changes a byte of the buffer of every receive or read that has one.
func corrupts(kinds ...provider.Kind) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		var bufs sync.Map
		type id struct {
			k provider.Kind
			c uint64
		}
		return &mutant{
			post: func(p *posting) error {
				bufs.Store(id{p.kind, p.op.Context}, p.op.Local.Bytes)
				return p.forward(p.op)
			},
			done: func(c *provider.Completion) int {
				for _, k := range kinds {
					b, ok := bufs.Load(id{c.Kind, c.Context})
					if bytes, _ := b.([]byte); ok && c.Kind == k && len(bytes) > 0 && c.Len > 0 {
						bytes[(c.Len-1)/2] ^= 1
					}
				}
				return 1
			},
		}
	}
}

// needy makes a mutant whose operations of a kind wait until the other domain calls something.
func needy(kinds ...provider.Kind) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		var mu sync.Mutex
		var held []func()
		return &mutant{
			post: func(p *posting) error {
				for _, k := range kinds {
					if p.kind == k {
						mu.Lock()
						defer mu.Unlock()
						held = append(held, func() { _ = p.forward(p.op) })
						return nil
					}
				}
				return p.forward(p.op)
			},
		}
	}
}

// slow makes a mutant whose Close of something takes more than it may.
func slow(what string) func(testing.TB) *mutant {
	return func(testing.TB) *mutant {
		return &mutant{shut: func(closed string, real func() error) error {
			if closed == what {
				pause(3 * closeBound) // more than a busy machine explains
			}
			return real()
		}}
	}
}

// first is the value that was asked for first, for ever.
func first[T comparable]() func(T) T {
	var once sync.Once
	var v T
	return func(x T) T {
		once.Do(func() { v = x })
		return v
	}
}

func badTag(c *provider.Completion) { c.Tag++ }
func badLen(c *provider.Completion) { c.Len++ }

// faultTable is what the groups must notice, at least one for each.
func faultTable() []fault {
	send, recv, trecv := provider.SendDone, provider.RecvDone, provider.TRecvDone
	read, write := provider.ReadDone, provider.WriteDone
	counts := func(n int32) func() bool {
		var seen atomic.Int32
		return func() bool { return seen.Add(1)%n == 0 }
	}
	return []fault{
		{group: "info", name: "no version", make: func(testing.TB) *mutant { return &mutant{info: func(i *provider.Info) { i.Version = "" }} }},
		{group: "info", name: "any option goes", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) { c.Options = nil }}
		}},
		{group: "insert", name: "each Insert gives a new peer", make: func(testing.TB) *mutant {
			var n atomic.Uint64
			return &mutant{insert: func(p provider.Peer) provider.Peer { return p + provider.Peer(n.Add(1)) }}
		}},
		{group: "insert", name: "removal is death", make: replaces(provider.ErrCancelled, provider.ErrPeerGone)},
		{group: "messages", name: "a wrong length", make: on(badLen, recv)},
		{group: "messages", name: "a wrong byte", make: corrupts(recv)},
		{group: "messages", name: "an end is lost", make: nth(20, send, 0)},
		{group: "messages", name: "an end comes twice", make: nth(20, recv, 2)},
		{group: "messages", name: "no source", make: on(func(c *provider.Completion) { c.Source = 0 }, recv)},
		{group: "zero", name: "nothing is something", make: on(badLen, recv)},
		{group: "zero", name: "nothing is lost", make: nth(3, recv, 0)},
		{group: "truncation", name: "a success", make: replaces(provider.ErrTruncated, nil)},
		{group: "truncation", name: "no numbers", make: replaces(provider.ErrTruncated, fmt.Errorf("%w: there was more", provider.ErrTruncated))},
		{group: "truncation", name: "a wrong number", make: replaces(provider.ErrTruncated, &provider.TruncatedError{Message: 1 << 20, Room: 1})},
		{group: "truncation", name: "the whole length", make: on(func(c *provider.Completion) { c.Len *= 2 }, recv, trecv)},
		{group: "vectored", name: "pieces in reverse", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == send && len(op.Locals) > 0 {
				op.Local, op.Locals[0] = op.Locals[0], op.Local
			}
		})},
		{group: "self", name: "no source", make: on(func(c *provider.Completion) { c.Source = 0 }, recv)},
		{group: "self", name: "a wrong byte", make: corrupts(recv, read)},
		{group: "tagged", name: "masks are ignored", make: posts(func(_ provider.Kind, op *provider.Op) { op.Ignore = 0 })},
		{group: "tagged", name: "tags are ignored", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == trecv {
				op.Ignore = ^uint64(0)
			}
		})},
		{group: "tagged", name: "a wrong tag", make: on(badTag, trecv)},
		{group: "peek-F57", name: "claims are peeks", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags.Has(provider.Peek) {
				op.Flags &^= provider.Claim
			}
		})},
		{group: "peek-F57", name: "discards are peeks", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags.Has(provider.Peek) {
				op.Flags &^= provider.Discard
			}
		})},
		{group: "peek-F57", name: "peeks take", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags == provider.Peek {
				op.Flags |= provider.Discard
			}
		})},
		{group: "peek-many-F57", name: "peeks at anybody's", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags.Has(provider.Peek) {
				op.Flags, op.Peer = op.Flags&^provider.Directed, 0
			}
		})},
		{group: "peek-many-F57", name: "peeks have no mask", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags.Has(provider.Peek) {
				op.Ignore = 0
			}
		})},
		{group: "directed", name: "from anybody", make: posts(func(_ provider.Kind, op *provider.Op) {
			if op.Flags.Has(provider.Directed) {
				op.Flags, op.Peer = op.Flags&^provider.Directed, 0
			}
		})},
		{group: "multi-receive", name: "all at the start", make: on(func(c *provider.Completion) { c.Offset = 0 }, recv)},
		{group: "multi-receive", name: "never given back", make: on(func(c *provider.Completion) { c.Flags &^= provider.MultiDone }, recv)},
		{group: "inject-F43", name: "copied later", make: delays(func(_ provider.Kind, op *provider.Op) bool { return op.Flags.Has(provider.Inject) })},
		{group: "flags-F44", name: "no HasData", make: on(func(c *provider.Completion) { c.Flags &^= provider.HasData }, provider.RemoteWrite)},
		{group: "flags-F44", name: "a write is seen", make: on(func(c *provider.Completion) { c.Data = 1 }, write)},
		{group: "flags-F44", name: "quiet is loud", make: posts(func(_ provider.Kind, op *provider.Op) { op.Flags &^= provider.Quiet })},
		{group: "order", name: "long ones are overtaken", make: delays(func(k provider.Kind, op *provider.Op) bool {
			return (k == send || k == provider.TSendDone) && op.Len() > 10000
		})},
		{group: "data-order", name: "messages overtake writes", make: keepsBack(func(k provider.Kind, op *provider.Op) bool { return k == write && op.Flags == 0 })},
		{group: "data-order", name: "data overtakes", make: on(func(c *provider.Completion) { c.Data++ }, provider.RemoteWrite)},
		{group: "many", name: "one comes twice", make: nth(100, recv, 2)},
		{group: "many", name: "one is another", make: on(func(c *provider.Completion) {
			if c.Data == 100 {
				c.Data--
			}
		}, recv, trecv)},

		{group: "rma", name: "a wrong byte", make: corrupts(read)},
		{group: "rma", name: "a wrong place", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == write && op.Offset > 0 && op.Len() > 0 {
				op.Offset--
			}
		})},
		{group: "rma-edges", name: "a wrong place", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == write {
				op.Offset++
			}
		})},
		{group: "rma-vectored", name: "pieces in reverse", make: posts(func(_ provider.Kind, op *provider.Op) {
			if len(op.Remotes) == 2 {
				op.Remotes[0].Key, op.Remotes[1].Key = op.Remotes[1].Key, op.Remotes[0].Key
			}
		})},
		{group: "keys", name: "a success", make: replaces(provider.ErrKey, nil)},
		{group: "keys", name: "no name", make: replaces(provider.ErrKey, provider.ErrKey)},
		{group: "keys", name: "the reason after what it is", make: turned(provider.ErrKey)},
		{group: "keys", name: "another error", make: replaces(provider.ErrKey, provider.ErrPeerGone)},
		{group: "huge-F41", name: "few bits of an offset", make: posts(func(_ provider.Kind, op *provider.Op) { op.Offset &= 1<<27 - 1 })},
		{group: "atomics", name: "the least is the greatest", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) {
				if a.Code == provider.AtomicMin {
					a.Code = provider.AtomicMax
				}
			}}
		}},
		{group: "atomics", name: "signs are lost", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) {
				if a.Type == provider.Int32 {
					a.Type = provider.Uint32
				}
			}}
		}},
		{group: "atomics-pieces-F43", name: "only the first piece of operands", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) {
				for i := range a.Locals {
					a.Locals[i].Bytes = make([]byte, len(a.Locals[i].Bytes))
				}
			}}
		}},
		{group: "atomics-pieces-F43", name: "pieces change places", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) {
				if n := len(a.Remotes); n > 1 && a.Remotes[0].Len == a.Remotes[1].Len {
					a.Remotes[0], a.Remotes[1] = a.Remotes[1], a.Remotes[0]
				}
			}}
		}},
		{group: "atomics-pieces-F43", name: "pieces lie one after the other", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) {
				if len(a.Remotes) > 1 {
					a.Remotes[1].Key, a.Remotes[1].Offset = a.Remotes[0].Key, a.Remotes[0].Offset+a.Remotes[0].Len
				}
			}}
		}},
		{group: "atomics-pieces-F43", name: "injected operands are read later", make: func(testing.TB) *mutant {
			var kept []byte
			return &mutant{atomic: func(a *provider.Atomic) {
				if a.Flags.Has(provider.Inject) && a.Code == provider.AtomicSum && a.Result == nil {
					kept, a.Local.Bytes = a.Local.Bytes, append([]byte(nil), kept...)
					if len(a.Local.Bytes) == 0 {
						a.Local.Bytes = make([]byte, len(kept))
					}
				}
			}}
		}},
		{group: "atomicity", name: "one in a hundred is lost", make: func(testing.TB) *mutant {
			lost := counts(100)
			return &mutant{atomic: func(a *provider.Atomic) {
				if lost() {
					a.Code = provider.AtomicMax
				}
			}}
		}},
		{group: "memory-F93", name: "views look younger", make: func(testing.TB) *mutant {
			return &mutant{stats: func(s *provider.Stats) { s.OldestView /= 2 }}
		}},
		{group: "memory-F93", name: "nothing counts", make: func(testing.TB) *mutant {
			return &mutant{stats: func(s *provider.Stats) { s.ArenaUsed = 0 }}
		}},
		{group: "memory-F93", name: "the most is what is", make: func(testing.TB) *mutant {
			return &mutant{stats: func(s *provider.Stats) { s.ViewsMost = s.Views }}
		}},
		{group: "memory-F93", name: "no bound", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) { c.Memory = 0 }}
		}},
		{group: "memory-F93", name: "room that views take is had again", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) { c.Memory += 2 << 20 }}
		}},
		{group: "arena", name: "memory is used again as it was", make: func(testing.TB) *mutant {
			return &mutant{alloc: func(b []byte) { b[len(b)-1] = 1 }}
		}},
		{group: "views", name: "a view is a copy", make: func(testing.TB) *mutant {
			return &mutant{view: func(b []byte) []byte { return append([]byte(nil), b...) }}
		}},
		{group: "memory-close", name: "memory is used again at once", make: func(testing.TB) *mutant {
			return &mutant{free: func(b []byte) { clear(b) }}
		}},
		{group: "memory-close", name: "what was posted ends by it", make: on(func(c *provider.Completion) { c.Err = provider.ErrClosed }, provider.RecvDone)},
		{group: "lease", name: "memory is used again at once", make: func(testing.TB) *mutant {
			return &mutant{free: func(b []byte) { clear(b) }}
		}},
		{group: "view-outlives", name: "the memory goes with the owner", make: func(testing.TB) *mutant {
			return &mutant{free: func(b []byte) { clear(b) }}
		}},

		{group: "fence", name: "no fence", make: keepsBack(func(k provider.Kind, _ *provider.Op) bool { return k == write })},
		{group: "fenced-sends", name: "no fence", make: posts(func(_ provider.Kind, op *provider.Op) { op.Flags &^= provider.Fence })},
		{group: "delivery-complete", name: "too early", make: posts(func(_ provider.Kind, op *provider.Op) { op.Flags &^= provider.DeliveryComplete })},
		{group: "counters", name: "one too many", make: func(testing.TB) *mutant {
			return &mutant{value: func(v uint64) uint64 { return v + 1 }}
		}},
		{group: "counters", name: "quiet is loud", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == read {
				op.Flags &^= provider.Quiet
			}
		})},
		{group: "counters", name: "quiet receives are loud", make: posts(func(k provider.Kind, op *provider.Op) {
			if k == recv {
				op.Flags &^= provider.Quiet
			}
		})},
		{group: "counters", name: "what atomics bring is no read", make: func(testing.TB) *mutant {
			return &mutant{atomic: func(a *provider.Atomic) { a.Result = nil }}
		}},
		{group: "cancel", name: "a success", make: replaces(provider.ErrCancelled, nil)},
		{group: "cancel", name: "no end", make: func(testing.TB) *mutant {
			return &mutant{done: func(c *provider.Completion) int {
				if errors.Is(c.Err, provider.ErrCancelled) {
					return 0
				}
				return 1
			}}
		}},
		{group: "cancel-sends", name: "a success", make: replaces(provider.ErrCancelled, nil)},
		{group: "cancel-sends", name: "another error", make: replaces(provider.ErrCancelled, provider.ErrClosed)},
		{group: "statistics", name: "one too many", make: func(testing.TB) *mutant { return &mutant{stats: func(s *provider.Stats) { s.BytesSent++ }} }},
		{group: "tracer", name: "ends are not traced", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) {
				if c.Tracer != nil {
					c.Tracer.Complete = nil
				}
			}}
		}},
		{group: "tracer", name: "a sleep is not traced", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) {
				if c.Tracer != nil {
					c.Tracer.Sleep = nil
				}
			}}
		}},
		{group: "tracer", name: "a death is not traced", make: func(testing.TB) *mutant {
			return &mutant{config: func(c *provider.DomainConfig) {
				if c.Tracer != nil {
					c.Tracer.PeerGone = nil
				}
			}}
		}},

		{group: "queue", name: "out of order", make: on(func(c *provider.Completion) { c.Context ^= 1 }, recv)},
		{group: "ways", name: "the channel is silent", make: func(testing.TB) *mutant {
			return &mutant{ready: func() <-chan struct{} { return nil }}
		}},
		{group: "ways", name: "the descriptor is silent", make: silentDescriptor},
		{group: "descriptor", name: "it is silent", make: silentDescriptor},
		{group: "descriptor", name: "one may never wait", make: func(testing.TB) *mutant {
			return &mutant{try: func(bool) bool { return false }}
		}},
		{group: "descriptor", name: "there is none", make: func(testing.TB) *mutant {
			return &mutant{fd: func() (int, error) { return -1, provider.ErrNotSupported }}
		}},
		{group: "wait-ends-F48-F49", name: "signals are lost", make: func(testing.TB) *mutant {
			return &mutant{signal: func(provider.CompletionQueue) {}}
		}},
		{group: "wait-ends-F48-F49", name: "signals come late", make: func(testing.TB) *mutant {
			return &mutant{signal: func(q provider.CompletionQueue) { pause(400 * time.Millisecond); q.Signal() }}
		}},
		{group: "wait-ends-F48-F49", name: "signals wake two", make: func(testing.TB) *mutant {
			return &mutant{signal: func(q provider.CompletionQueue) { q.Signal(); q.Signal() }}
		}},
		{group: "shared-queue-F49", name: "one comes twice", make: nth(500, recv, 2)},
		{group: "shared-queue-F49", name: "one is lost", make: nth(500, send, 0)},
		{group: "small-queue-F51", name: "there is always room", make: func(testing.TB) *mutant {
			return &mutant{cq: func(c *provider.CQConfig) { c.Size = 0 }}
		}},
		{group: "room", name: "nobody is told", make: func(testing.TB) *mutant {
			return &mutant{ready: func() <-chan struct{} { return nil }}
		}},
		{group: "shared-room", name: "nobody is told any more", make: func(testing.TB) *mutant {
			var told atomic.Int32
			return &mutant{room: func() bool { return told.Add(1) < 50 }}
		}},
		{group: "shared-room", name: "an event loop may always sleep", make: func(testing.TB) *mutant {
			return &mutant{try: func(bool) bool { return true }}
		}},
		{group: "shared-room", name: "nothing is refused", make: func(testing.TB) *mutant {
			return &mutant{post: func(p *posting) error {
				for {
					if err := p.forward(p.op); !errors.Is(err, provider.ErrAgain) {
						return err
					}
					pause(time.Microsecond)
				}
			}}
		}},
		{group: "allocations", name: "one for each post", make: func(testing.TB) *mutant {
			var last atomic.Pointer[[64]byte]
			return &mutant{post: func(p *posting) error {
				last.Store(new([64]byte))
				return p.forward(p.op)
			}}
		}},
		{group: "goroutines", name: "one runs", mode: provider.Manual, make: busyDomain(time.Hour)},

		{group: "unexpected-F35", name: "no memory", make: func(testing.TB) *mutant {
			hundredth := counts(100)
			return &mutant{post: func(p *posting) error {
				if p.kind == provider.TSendDone && hundredth() {
					return fmt.Errorf("the pool is empty: %w", provider.ErrNoMemory)
				}
				return p.forward(p.op)
			}}
		}},
		{group: "unexpected-F35", name: "wrong bytes", make: corrupts(trecv)},
		{group: "slow-receiver-F37", name: "one is another", make: func(testing.TB) *mutant {
			tenth := counts(10)
			return &mutant{done: func(c *provider.Completion) int {
				if c.Kind == recv && tenth() {
					c.Len--
				}
				return 1
			}}
		}},
		{group: "exit-F31", name: "lost with the sender", make: func(testing.TB) *mutant {
			return &mutant{post: func(p *posting) error {
				if p.kind == trecv {
					p.op.Tag ^= 1
				}
				return p.forward(p.op)
			}}
		}},
		{group: "first-F46", name: "not before the peer has called", make: needy(send)},
		{group: "first-F46", name: "refused at first", make: func(testing.TB) *mutant {
			var later atomic.Bool
			return &mutant{post: func(p *posting) error {
				if p.kind == send && !later.Swap(true) {
					return provider.ErrAgain
				}
				return p.forward(p.op)
			}}
		}},
		{group: "never", name: "cancelled by Close", make: replaces(provider.ErrClosed, provider.ErrCancelled)},
		{group: "never", name: "no end", make: nth(1, recv, 0)},
		{group: "descriptors-F53", name: "a message is lost", make: nth(10, recv, 0)},
		{group: "descriptors-F53", name: "a send ends twice", make: nth(10, send, 2)},
		{group: "descriptors-F53", name: "an error says nothing", make: func(testing.TB) *mutant {
			var posts atomic.Int32
			return &mutant{post: func(p *posting) error {
				if p.kind == send && posts.Add(1) == 12 {
					return errors.New("too many open files")
				}
				return p.forward(p.op)
			}}
		}},
		{group: "denied-F38-F39", name: "a line for each message", make: func(testing.TB) *mutant {
			var log *slog.Logger
			return &mutant{
				config: func(c *provider.DomainConfig) { log = c.Logger },
				post: func(p *posting) error {
					log.Info("denied")
					return p.forward(p.op)
				},
			}
		}},
		{group: "denied-F38-F39", name: "other bytes", make: corrupts(recv)},
		{group: "compute-arena-F52", name: "not before the target calls", make: needy(read)},
		{group: "compute-private-F52", name: "not before the target calls", make: needy(read)},

		{group: "unreachable", name: "again and again", make: replaces(provider.ErrUnreachable, provider.ErrAgain)},
		{group: "unreachable", name: "twice", make: func(testing.TB) *mutant {
			return &mutant{done: func(c *provider.Completion) int {
				if errors.Is(c.Err, provider.ErrUnreachable) {
					return 2
				}
				return 1
			}}
		}},
		{group: "unreachable", name: "the reason before what it is", make: turned(provider.ErrUnreachable)},
		{group: "names-F25-F32", name: "names do not count", make: func(testing.TB) *mutant {
			return &mutant{ep: func(c *provider.EndpointConfig) { c.Name = "" }}
		}},
		{group: "one-dies", name: "all die with one", make: func(testing.TB) *mutant {
			var dead atomic.Bool
			return &mutant{done: func(c *provider.Completion) int {
				if errors.Is(c.Err, provider.ErrPeerGone) {
					dead.Store(true)
				}
				if dead.Load() {
					c.Err = provider.ErrPeerGone
				}
				return 1
			}}
		}},
		{group: "close-ends", name: "it takes long", make: slow("endpoint")},
		{group: "close-ends", name: "one does not end", make: func(testing.TB) *mutant {
			var once sync.Once
			return &mutant{done: func(c *provider.Completion) (n int) {
				n = 1
				if errors.Is(c.Err, provider.ErrClosed) {
					once.Do(func() { n = 0 })
				}
				return n
			}}
		}},
		{group: "close-races", name: "it takes long", make: slow("domain")},
		{group: "four", name: "one comes twice", make: nth(50, recv, 2)},
		{group: "peers", name: "all are one", make: func(testing.TB) *mutant { return &mutant{insert: first[provider.Peer]()} }},
		{group: "all-to-all-F27", name: "one is lost", make: nth(40, recv, 0)},
		{group: "cycles-F42", name: "a descriptor stays", make: leaky},
		{group: "cycles-F42", name: "no data", make: on(func(c *provider.Completion) { c.Data = 0 }, provider.RemoteWrite)},
		{group: "idle", name: "a timer runs", make: busyDomain(time.Millisecond)},
		{group: "idle", name: "a timer runs", mode: provider.Manual, make: busyDomain(time.Millisecond)},
	}
}

// silentDescriptor gives one that nobody makes readable.
func silentDescriptor(t testing.TB) *mutant {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	fd := int(r.Fd())
	return &mutant{fd: func() (int, error) { return fd, nil }}
}

// busyDomain has a goroutine that wakes up again and again, until the test is over.
func busyDomain(every time.Duration) func(t testing.TB) *mutant {
	return func(t testing.TB) *mutant {
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		t.Cleanup(func() { cancel(); all.Wait() })
		return &mutant{opened: func(provider.Domain) {
			all.Go(func() {
				tick := time.NewTicker(every)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
				}
			})
		}}
	}
}

// leaky keeps a descriptor for each domain, until the test is over.
func leaky(t testing.TB) *mutant {
	return &mutant{opened: func(provider.Domain) {
		if f, err := os.Open(os.DevNull); err == nil {
			t.Cleanup(func() { _ = f.Close() })
		}
	}}
}

// unbroken are the groups that this package breaks nothing of, with the reason.
var unbroken = map[string]string{
	"stale-F26": "addresses of the provider here say only the name",
}

// crossing is a provider that knows other processes. The groups that need them are broken over it, if it is
// linked into this test.
const crossing = "shm"

// crossFaults are what the groups that need a second process must notice. They are in this process only.
func crossFaults() []fault {
	twice := func(testing.TB) *mutant {
		return &mutant{done: func(c *provider.Completion) int {
			if errors.Is(c.Err, provider.ErrPeerGone) {
				return 2
			}
			return 1
		}}
	}
	return []fault{
		{group: "death-F29", name: "again and again", make: replaces(provider.ErrPeerGone, provider.ErrAgain)},
		{group: "death-F29", name: "no name", make: replaces(provider.ErrPeerGone, provider.ErrPeerGone)},
		{group: "death-F29", name: "the reason before what it is", make: turned(provider.ErrPeerGone)},
		{group: "death-F29", name: "twice", make: twice},
		{group: "kill-F33-F34", name: "no name", make: replaces(provider.ErrPeerGone, provider.ErrPeerGone)},
		{group: "kill-F33-F34", name: "twice", make: twice},
		{group: "kill-F33-F34", name: "one does not end", make: func(testing.TB) *mutant {
			var once sync.Once
			return &mutant{done: func(c *provider.Completion) (n int) {
				n = 1
				if errors.Is(c.Err, provider.ErrPeerGone) {
					once.Do(func() { n = 0 })
				}
				return n
			}}
		}},
		{group: "stop-F34", name: "a call waits for the peer", make: func(testing.TB) *mutant {
			var once sync.Once
			return &mutant{stats: func(*provider.Stats) {
				once.Do(func() { pause(5 * time.Second) }) // five times what it may: more than a busy machine explains
			}}
		}},
		{group: "others-go-on-F34", name: "others wait too", make: func(testing.TB) *mutant {
			return &mutant{done: func(c *provider.Completion) int {
				if c.Context == 50 { // of the message to the other peer
					return 0
				}
				return 1
			}}
		}},
		{group: "viewer-dies", name: "again and again", make: replaces(provider.ErrPeerGone, provider.ErrAgain)},
	}
}

// A check that cannot fail is none: each group must notice what is broken for it.
func TestGroupsNotice(t *testing.T) {
	broken := map[string]bool{}
	for _, f := range faultTable() {
		broken[f.group] = true
		t.Run(f.group+"/"+f.name, func(t *testing.T) { f.noticed(t, "loop", 1) })
	}
	for _, f := range crossFaults() {
		broken[f.group] = true
		t.Run(f.group+"/"+f.name, func(t *testing.T) {
			if _, ok := provider.Lookup(crossing); !ok {
				t.Skipf("no provider %q is linked into this test", crossing)
			}
			f.noticed(t, crossing, 2)
		})
	}
	for _, g := range groups() {
		if broken[g.name] == (unbroken[g.name] != "") {
			t.Errorf("%s: broken by a fault: %v; the reason why not: %q", g.name, broken[g.name], unbroken[g.name])
		}
	}
}

// noticed fails the test unless the group fails over the broken provider.
func (f fault) noticed(t *testing.T, name string, procs int) {
	t.Helper()
	w := f.make(t).wrap()
	w.Name = ""
	c := Config{Provider: name, Procs: procs, Wrap: w, Denied: map[string]string{}, patience: 500 * time.Millisecond}
	g := choose(t, []string{f.group})[0]
	r := record(t, func(tb testing.TB) {
		p, info := find(tb, &c)
		g.check(tb, c, p, info, f.mode)
	})
	if r.skipped || !r.failed {
		t.Fatalf("nobody noticed; skipped: %v; the group said:\n%s", r.skipped, r.said())
	}
	t.Log(r.said())
}

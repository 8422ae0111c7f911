package provutil

import (
	"fmt"
	"math/rand/v2"

	"github.com/weft-fabric/weft/fabric/provider"
)

// AV is the address vector of a domain: peers by number and by address, each with what the provider knows of
// it. Addresses are compared as they are: the provider normalizes them first. The lock of the domain guards it.
//
// A peer's number holds its place in the table, counted from 1, and how often that place was taken before: a number that
// was removed names nobody.
type AV[T any] struct {
	Max int // peers; 0 means no bound

	pool Pool[avEntry[T]]
	by   map[provider.Address]provider.Peer
}

// first is what the ids of the pool are above the numbers of peers: an id counts places from 0, and the uses of each from 1.
const first = 1<<32 - 1

func peerOf(id uint64) provider.Peer { return provider.Peer(id - first) }

func (a *AV[T]) entry(p provider.Peer) *avEntry[T] { return a.pool.Get(uint64(p) + first) }

type avEntry[T any] struct {
	address provider.Address
	dead    bool
	value   T
}

// Insert gives the peer of an address, and makes it if it is new. value stays at its place until Remove.
func (a *AV[T]) Insert(addr provider.Address) (p provider.Peer, value *T, fresh bool, err error) {
	if p, ok := a.by[addr]; ok {
		return p, &a.entry(p).value, false, nil
	}
	if a.Max > 0 && a.pool.Len() >= a.Max {
		return 0, nil, false, fmt.Errorf("%d peers are the limit: %w", a.Max, provider.ErrNoMemory)
	}
	id, e := a.pool.New()
	e.address = addr
	if a.by == nil {
		a.by = make(map[provider.Address]provider.Peer)
	}
	p = peerOf(id)
	a.by[addr] = p
	return p, &e.value, true, nil
}

// Find gives the peer of an address that was inserted and is not dead.
func (a *AV[T]) Find(addr provider.Address) (p provider.Peer, value *T) {
	p, ok := a.by[addr]
	if !ok {
		return 0, nil
	}
	return p, &a.entry(p).value
}

// Lookup gives what is known of a peer, dead or not; nil of a number that names nobody.
func (a *AV[T]) Lookup(p provider.Peer) *T {
	if e := a.entry(p); e != nil {
		return &e.value
	}
	return nil
}

// Address is the address of a peer; ErrInvalid of a number that names nobody.
func (a *AV[T]) Address(p provider.Peer) (provider.Address, error) {
	if e := a.entry(p); e != nil {
		return e.address, nil
	}
	return "", fmt.Errorf("peer %v was not inserted here, or was removed: %w", p, provider.ErrInvalid)
}

// Bury takes a dead peer's address away from it: the number stays dead, and the address can be inserted anew.
func (a *AV[T]) Bury(p provider.Peer) {
	e := a.entry(p)
	if e == nil || e.dead {
		return
	}
	e.dead = true
	delete(a.by, e.address)
}

// Remove forgets a peer. False if the number names nobody.
func (a *AV[T]) Remove(p provider.Peer) bool {
	e := a.entry(p)
	if e == nil {
		return false
	}
	a.Bury(p)
	a.pool.Put(uint64(p) + first)
	return true
}

// Len is the number of peers, dead ones included.
func (a *AV[T]) Len() int { return a.pool.Len() }

// Each calls f for each peer. f may remove peers.
func (a *AV[T]) Each(f func(p provider.Peer, addr provider.Address, value *T)) {
	a.pool.Each(func(id uint64, e *avEntry[T]) { f(peerOf(id), e.address, &e.value) })
}

// randomGeneration starts generations where a restarted program does not start them again.
func randomGeneration() uint32 { return rand.Uint32() }

package native

import (
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fabric"
)

// Memory is arena memory: peers that are told the key view it, without any help of this process.
type Memory struct {
	of    *Fabric
	inner *fabric.Memory
	bytes []byte
	free  sync.Once
}

// Alloc gets n bytes of arena memory, zeroed, aligned to 64 bytes and to pages from 64 KiB on. It fails with fabric.ErrNoMemory (Config.Memory,
// or what the system has), fabric.ErrInvalid (n) and fabric.ErrClosed.
//
// Memory that is new to the process costs what the kernel takes for its pages: in Alloc up to 64 MiB (the option prefault of shm), above that
// where it is first touched. Memory that was in use before is zeroed only. 64 MiB took 110 ms when new and 20 ms the next time, on a virtual machine with two busy
// cores, so who needs memory again and again keeps it.
func (f *Fabric) Alloc(n int) (*Memory, error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, fmt.Errorf("native: allocate %d bytes: %w", n, fabric.ErrClosed)
	}
	f.out++
	f.mu.Unlock()
	m, err := f.domain.Alloc(n, fabric.PeerRead)
	if err != nil {
		f.freed()
		return nil, fmt.Errorf("native: %w", err)
	}
	return &Memory{of: f, inner: m, bytes: m.Bytes()}, nil
}

// Bytes is the memory, always the same slice. It must not be touched after Free.
func (m *Memory) Bytes() []byte { return m.bytes }

// Key is what peers name the memory by.
func (m *Memory) Key() fabric.Key { return m.inner.Key() }

// Free takes the memory back: new views of it end with fabric.ErrKey. Views that peers have stay readable, as the bytes are now; the
// memory is used anew when the last is released. Free waits for nobody, but the last one after Close ends the domain. More than once is harmless.
func (m *Memory) Free() {
	m.free.Do(func() {
		_ = m.inner.Close() // it can only fail where it was closed before
		m.of.freed()
	})
}

// freed counts memory that is out no more.
func (f *Fabric) freed() {
	f.mu.Lock()
	f.out--
	last := f.closed && f.out == 0
	f.mu.Unlock()
	if last {
		_ = f.domain.Close() // Close has returned, and so said how the endpoint ended
	}
}

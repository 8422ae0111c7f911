//go:build !linux

package sys

import (
	"context"
	"os"
	"sync/atomic"
	"time"
)

// Everything here fails: the calls are Linux's. It compiles so that programs can be built and say so.

func probeFeature(Feature) error { return ErrNotSupported }

func closeFD(int) error { return ErrNotSupported }

// Dup is not available here.
func (f *FD) Dup() (*FD, error) { return nil, ErrNotSupported }

// Memfd is not available here.
func Memfd(MemfdConfig) (*FD, error) { return nil, ErrNotSupported }

// Truncate is not available here.
func Truncate(*FD, int64) error { return ErrNotSupported }

// Size is not available here.
func Size(*FD) (int64, error) { return 0, ErrNotSupported }

// Allocate is not available here.
func Allocate(*FD, int64, int64) error { return ErrNotSupported }

// Discard is not available here.
func Discard(*FD, int64, int64) error { return ErrNotSupported }

// Seal is not available here.
func Seal(*FD, Seals) error { return ErrNotSupported }

// SealsOf is not available here.
func SealsOf(*FD) (Seals, error) { return 0, ErrNotSupported }

// CheckSealed is not available here.
func CheckSealed(*FD, int64, Seals) error { return ErrNotSupported }

// CheckPages is not available here.
func CheckPages(*FD, int64) error { return ErrNotSupported }

// HugePools lists nothing here.
func HugePools() []HugePool { return nil }

// ReadOnly is not available here.
func ReadOnly(*FD) (*FD, error) { return nil, ErrNotSupported }

// Map is not available here.
func Map(*FD, int64, int, bool) (*Mapping, error) { return nil, ErrNotSupported }

func unmap([]byte) error { return ErrNotSupported }

// Populate is not available here.
func Populate([]byte, bool, Features) error { return ErrNotSupported }

// Eventfd is not available here.
type Eventfd struct{ *FD }

// NewEventfd is not available here.
func NewEventfd(Features) (Eventfd, error) { return Eventfd{}, ErrNotSupported }

// ReceivedEventfd is not available here.
func ReceivedEventfd(*FD) (Eventfd, error) { return Eventfd{}, ErrNotSupported }

// Ring is not available here.
func (Eventfd) Ring() error { return ErrNotSupported }

// Drain is not available here.
func (Eventfd) Drain() (bool, error) { return false, ErrNotSupported }

// NewCounter is not available here.
func NewCounter() (*os.File, error) { return nil, ErrNotSupported }

// Counter is not available here.
type Counter int

// Add fails.
func (Counter) Add(uint64) error { return ErrNotSupported }

// Wait fails.
func (Counter) Wait() (uint64, error) { return 0, ErrNotSupported }

// Poller is not available here.
type Poller struct{}

// NewPoller is not available here.
func NewPoller() (*Poller, error) { return nil, ErrNotSupported }

// Fd is not available here.
func (*Poller) Fd() int { return -1 }

// Add is not available here.
func (*Poller) Add(*FD, Events, uint64) error { return ErrNotSupported }

// Modify is not available here.
func (*Poller) Modify(*FD, Events, uint64) error { return ErrNotSupported }

// Remove is not available here.
func (*Poller) Remove(*FD) error { return ErrNotSupported }

// Poll is not available here.
func (*Poller) Poll([]Event) (int, error) { return 0, ErrNotSupported }

// Park is not available here.
func (*Poller) Park(context.Context, <-chan struct{}) error { return ErrNotSupported }

// Kick is not available here.
func (*Poller) Kick() {}

// Close is not available here.
func (*Poller) Close() error { return nil }

// Socket is not available here.
type Socket struct{ *FD }

// ListenUnix is not available here.
func ListenUnix(UnixAddress, SocketType, int) (Socket, error) { return Socket{}, ErrNotSupported }

// ConnectUnix is not available here.
func ConnectUnix(UnixAddress, SocketType) (Socket, error) { return Socket{}, ErrNotSupported }

// SocketPair is not available here.
func SocketPair(SocketType) (a, b Socket, err error) { return Socket{}, Socket{}, ErrNotSupported }

// Accept is not available here.
func (Socket) Accept() (Socket, error) { return Socket{}, ErrNotSupported }

// Send is not available here.
func (Socket) Send([]byte, ...*FD) (int, error) { return 0, ErrNotSupported }

// Recv is not available here.
func (Socket) Recv([]byte, int) (int, []*FD, error) { return 0, nil, ErrNotSupported }

// Take is not available here.
func (Socket) Take([]byte, int) (int, []*FD, error) { return 0, nil, ErrNotSupported }

// Shutdown is not available here.
func (Socket) Shutdown() error { return ErrNotSupported }

// ShutdownSend is not available here.
func (Socket) ShutdownSend() error { return ErrNotSupported }

// Peer is not available here.
func (Socket) Peer() (Credentials, error) { return Credentials{}, ErrNotSupported }

// DescriptorLimit is not available here.
func DescriptorLimit() (uint64, error) { return 0, ErrNotSupported }

// LockableMemory is not available here.
func LockableMemory() (uint64, error) { return 0, ErrNotSupported }

// ReadProcess is not available here.
func ReadProcess(int, uint64, []byte, Features) (int, error) { return 0, ErrNotSupported }

// WriteProcess is not available here.
func WriteProcess(int, uint64, []byte, Features) (int, error) { return 0, ErrNotSupported }

// ReadGuarded is not available here.
func ReadGuarded(int, uint64, []byte, Guard, Features) error { return ErrNotSupported }

// FateOf sees no process here.
func FateOf(int) Fate { return FateUnknown }

// Yield does nothing here.
func Yield() {}

// BootID is not available here.
func BootID() ([16]byte, error) { return [16]byte{}, ErrNotSupported }

// NetNamespace is not available here.
func NetNamespace() (uint64, error) { return 0, ErrNotSupported }

// FutexWait is not available here.
func FutexWait(*atomic.Uint32, uint32, time.Duration) error { return ErrNotSupported }

// FutexWake is not available here.
func FutexWake(*atomic.Uint32, int) (int, error) { return 0, ErrNotSupported }

// FutexWaitAny is not available here.
func FutexWaitAny([]WaitWord, time.Duration, Features) error { return ErrNotSupported }

// RobustOwner is not available here.
type RobustOwner struct{}

// NewRobustOwner is not available here.
func NewRobustOwner(*Mapping, []int, func(), Features) (*RobustOwner, error) {
	return nil, ErrNotSupported
}

// Close is not available here.
func (*RobustOwner) Close() error { return nil }

// Affinity is not available here.
func Affinity(int) ([]int, error) { return nil, ErrNotSupported }

// SetAffinity is not available here.
func SetAffinity(int, []int) error { return ErrNotSupported }

// Pollable is not available here.
func Pollable(*FD, string) (*os.File, error) { return nil, ErrNotSupported }

// SharedEventfd is not available here.
func SharedEventfd(int) (Eventfd, error) { return Eventfd{}, ErrNotSupported }

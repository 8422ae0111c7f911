package fabric

import "github.com/weft-fabric/weft/fabric/provider"

// The words that programs and providers share. They are documented in package provider.
type (
	Caps            = provider.Caps
	Flags           = provider.Flags
	Access          = provider.Access
	Progress        = provider.Progress
	Kind            = provider.Kind
	CompletionFlags = provider.CompletionFlags
	Completion      = provider.Completion
	Peer            = provider.Peer
	Key             = provider.Key
	Address         = provider.Address
	Segment         = provider.Segment
	RemoteSegment   = provider.RemoteSegment
	Op              = provider.Op
	Atomic          = provider.Atomic
	AtomicCode      = provider.AtomicCode
	DataType        = provider.DataType
	Info            = provider.Info
	Feature         = provider.Feature
	Limits          = provider.Limits
	MemoryMode      = provider.MemoryMode
	Hints           = provider.Hints
	DomainConfig    = provider.DomainConfig
	CQConfig        = provider.CQConfig
	Tracer          = provider.Tracer
	Stats           = provider.Stats
	PeerStats       = provider.PeerStats
	OpError         = provider.OpError
)

// What a provider can do, or a program asks for.
const (
	Msg          = provider.Msg
	Tagged       = provider.Tagged
	RMA          = provider.RMA
	Atomics      = provider.Atomics
	RemoteCQData = provider.RemoteCQData
	MultiRecv    = provider.MultiRecv
	DirectedRecv = provider.DirectedRecv
	Source       = provider.Source
	Arena        = provider.Arena
	Views        = provider.Views
	LocalComm    = provider.LocalComm
	RemoteComm   = provider.RemoteComm
)

// The flags of operations. Which goes with which call is said at the calls.
const (
	RemoteData       = provider.RemoteData
	Inject           = provider.Inject
	DeliveryComplete = provider.DeliveryComplete
	Quiet            = provider.Quiet
	More             = provider.More
	Directed         = provider.Directed
	Multi            = provider.Multi
	Peek             = provider.Peek
	Claim            = provider.Claim
	Discard          = provider.Discard
	Fence            = provider.Fence
)

// What peers may do with memory.
const (
	PeerRead  = provider.PeerRead
	PeerWrite = provider.PeerWrite
)

// Who moves operations on.
const (
	Auto   = provider.Auto
	Manual = provider.Manual
)

// What a completion ends, and its flags.
const (
	SendDone    = provider.SendDone
	RecvDone    = provider.RecvDone
	TSendDone   = provider.TSendDone
	TRecvDone   = provider.TRecvDone
	ReadDone    = provider.ReadDone
	WriteDone   = provider.WriteDone
	AtomicDone  = provider.AtomicDone
	RemoteWrite = provider.RemoteWrite

	HasData   = provider.HasData
	MultiDone = provider.MultiDone
	Claimed   = provider.Claimed
)

// The atomic operations.
const (
	AtomicMin      = provider.AtomicMin
	AtomicMax      = provider.AtomicMax
	AtomicSum      = provider.AtomicSum
	AtomicProd     = provider.AtomicProd
	AtomicLogOr    = provider.AtomicLogOr
	AtomicLogAnd   = provider.AtomicLogAnd
	AtomicBitOr    = provider.AtomicBitOr
	AtomicBitAnd   = provider.AtomicBitAnd
	AtomicLogXor   = provider.AtomicLogXor
	AtomicBitXor   = provider.AtomicBitXor
	AtomicRead     = provider.AtomicRead
	AtomicWrite    = provider.AtomicWrite
	AtomicSwapEq   = provider.AtomicSwapEq
	AtomicSwapNe   = provider.AtomicSwapNe
	AtomicSwapLe   = provider.AtomicSwapLe
	AtomicSwapLt   = provider.AtomicSwapLt
	AtomicSwapGe   = provider.AtomicSwapGe
	AtomicSwapGt   = provider.AtomicSwapGt
	AtomicMaskSwap = provider.AtomicMaskSwap
)

// The element types of atomic operations.
const (
	Int8       = provider.Int8
	Uint8      = provider.Uint8
	Int16      = provider.Int16
	Uint16     = provider.Uint16
	Int32      = provider.Int32
	Uint32     = provider.Uint32
	Int64      = provider.Int64
	Uint64     = provider.Uint64
	Float32    = provider.Float32
	Float64    = provider.Float64
	Complex64  = provider.Complex64
	Complex128 = provider.Complex128
)

// What can be wrong. Test with errors.Is.
var (
	ErrAgain        = provider.ErrAgain
	ErrClosed       = provider.ErrClosed
	ErrCancelled    = provider.ErrCancelled
	ErrSignal       = provider.ErrSignal
	ErrPeerGone     = provider.ErrPeerGone
	ErrUnreachable  = provider.ErrUnreachable
	ErrKey          = provider.ErrKey
	ErrTruncated    = provider.ErrTruncated
	ErrTooLong      = provider.ErrTooLong
	ErrNoMessage    = provider.ErrNoMessage
	ErrNotSupported = provider.ErrNotSupported
	ErrInvalid      = provider.ErrInvalid
	ErrNoMemory     = provider.ErrNoMemory
	ErrProtocol     = provider.ErrProtocol
	ErrBusy         = provider.ErrBusy
)

// Bytes makes a segment of raw bytes. They are copied through, or registered for this one operation.
func Bytes(b []byte) Segment { return Segment{Bytes: b} }

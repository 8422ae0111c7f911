package fabric

import "github.com/weft-fabric/weft/fabric/provider"

// The words that programs and providers share. Each is documented in full in package provider.
type (
	// Caps is what a provider can do, or what a program asks for: a set of the constants below. In full: go doc github.com/weft-fabric/weft/fabric/provider Caps
	Caps = provider.Caps
	// Flags change one operation: a set of the constants below. In full: go doc github.com/weft-fabric/weft/fabric/provider Flags
	Flags = provider.Flags
	// Access says what peers may do with memory: PeerRead, PeerWrite, both or none. In full: go doc github.com/weft-fabric/weft/fabric/provider Access
	Access = provider.Access
	// Progress is who moves operations on: Auto or Manual. In full: go doc github.com/weft-fabric/weft/fabric/provider Progress
	Progress = provider.Progress
	// Kind is the operation that a completion ends. In full: go doc github.com/weft-fabric/weft/fabric/provider Kind
	Kind = provider.Kind
	// CompletionFlags say more of a completion. In full: go doc github.com/weft-fabric/weft/fabric/provider CompletionFlags
	CompletionFlags = provider.CompletionFlags
	// Completion is the end of one operation: its Context, Kind, length, source and error. In full: go doc github.com/weft-fabric/weft/fabric/provider Completion
	Completion = provider.Completion
	// Peer is the number of an address that was inserted into a domain; 0 is no peer. In full: go doc github.com/weft-fabric/weft/fabric/provider Peer
	Peer = provider.Peer
	// Key names registered memory of a peer, as its owner tells it. In full: go doc github.com/weft-fabric/weft/fabric/provider Key
	Key = provider.Key
	// Address is where an endpoint can be reached: "scheme://...". In full: go doc github.com/weft-fabric/weft/fabric/provider Address
	Address = provider.Address
	// Segment is a piece of local memory: of Bytes, or of Memory.Slice. In full: go doc github.com/weft-fabric/weft/fabric/provider Segment
	Segment = provider.Segment
	// RemoteSegment is a piece of a peer's registered memory: key, offset and length. In full: go doc github.com/weft-fabric/weft/fabric/provider RemoteSegment
	RemoteSegment = provider.RemoteSegment
	// Op is one operation: local buffer, peer, remote memory, tag, data, flags, context. In full: go doc github.com/weft-fabric/weft/fabric/provider Op
	Op = provider.Op
	// Atomic is an atomic operation: an Op, the code, the type of the elements, and buffers to compare with and for the result. In full:
	// go doc github.com/weft-fabric/weft/fabric/provider Atomic
	Atomic = provider.Atomic
	// AtomicCode is what an atomic operation does to each element. In full: go doc github.com/weft-fabric/weft/fabric/provider AtomicCode
	AtomicCode = provider.AtomicCode
	// DataType is the type of the elements of an atomic operation. In full: go doc github.com/weft-fabric/weft/fabric/provider DataType
	DataType = provider.DataType
	// Info describes one way to communicate, on this machine, now. In full: go doc github.com/weft-fabric/weft/fabric/provider Info
	Info = provider.Info
	// Feature is something that a provider can use if the system has it. In full: go doc github.com/weft-fabric/weft/fabric/provider Feature
	Feature = provider.Feature
	// Limits are the bounds of a provider; 0 means there is none. In full: go doc github.com/weft-fabric/weft/fabric/provider Limits
	Limits = provider.Limits
	// MemoryMode says what a provider asks of memory registration. In full: go doc github.com/weft-fabric/weft/fabric/provider MemoryMode
	MemoryMode = provider.MemoryMode
	// Hints say what a program needs of Discover; the zero value asks for anything. In full: go doc github.com/weft-fabric/weft/fabric/provider Hints
	Hints = provider.Hints
	// DomainConfig says how a domain is to be; the zero value is right for most. In full: go doc github.com/weft-fabric/weft/fabric/provider DomainConfig
	DomainConfig = provider.DomainConfig
	// CQConfig says how long a completion queue is. In full: go doc github.com/weft-fabric/weft/fabric/provider CQConfig
	CQConfig = provider.CQConfig
	// Tracer hears of each event of a domain. In full: go doc github.com/weft-fabric/weft/fabric/provider Tracer
	Tracer = provider.Tracer
	// Stats are numbers of a domain since it was opened. In full: go doc github.com/weft-fabric/weft/fabric/provider Stats
	Stats = provider.Stats
	// PeerStats are numbers of one peer. In full: go doc github.com/weft-fabric/weft/fabric/provider PeerStats
	PeerStats = provider.PeerStats
	// OpError is what operations fail with: what was tried, through which provider, towards whom, why. In full: go doc github.com/weft-fabric/weft/fabric/provider OpError
	OpError = provider.OpError
	// TruncatedError is an ErrTruncated with the length of the message.
	TruncatedError = provider.TruncatedError
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

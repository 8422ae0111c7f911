package fabric

import "github.com/weft-fabric/weft/fabric/provider"

// The words that programs and providers share. What each is and has stands here in short, and in full in package
// provider ("go doc github.com/weft-fabric/weft/fabric/provider Op", say).
type (
	// Caps is what a provider can do, or what a program asks for: a set of Msg, Tagged, RMA and so on. Has asks for some, String lists all.
	Caps = provider.Caps
	// Flags change one operation: a set of RemoteData, Inject, Quiet and so on. Which go with which call is in the table at Endpoint, what
	// each does at the constants. Has asks for some, String lists all.
	Flags = provider.Flags
	// Access says what peers may do with memory: PeerRead, PeerWrite, both or none. Has asks for one, String lists all.
	Access = provider.Access
	// Progress is who moves operations on: Auto or Manual.
	Progress = provider.Progress
	// Kind is the operation that a completion ends: SendDone, RecvDone and so on. String names it as errors do, Flags says which flags go with it.
	Kind = provider.Kind
	// CompletionFlags say more of a completion: a set of HasData, MultiDone and Claimed. Has asks for some, String lists all.
	CompletionFlags = provider.CompletionFlags
	// Completion is the end of one operation. What is not said of a kind is zero there.
	//
	//	Context  what the operation had
	//	Kind     which operation it was
	//	Flags    HasData, MultiDone, Claimed
	//	Len      bytes; of a truncated receive those that were placed
	//	Offset   receive with Multi: where in the buffer the message starts
	//	Tag      tagged receive: the message's
	//	Data     with HasData, and of RemoteWrite: what the peer sent
	//	Source   the other side; 0 of a receive from who was never inserted here, unless Caps has Source
	//	Err      nil for success; else an *OpError
	Completion = provider.Completion
	// Peer is the number of an address that was inserted into a domain; 0 is no peer. Domain.Address tells the address, String the number as
	// errors say it.
	Peer = provider.Peer
	// Key names registered memory of a peer, as its owner tells it (Memory.Key); how it gets there is the program's affair.
	Key = provider.Key
	// Address is where an endpoint can be reached: "scheme://...", printable and without spaces.
	Address = provider.Address
	// Segment is a piece of local memory: of Bytes, or of Memory.Slice.
	//
	//	Bytes   the memory
	//	Memory  what it is a part of; nil for raw bytes
	//	Kind    what raw bytes are a part of, for providers that register local buffers and keep registrations; nil: nobody says
	Segment = provider.Segment
	// RemoteSegment is a piece of a peer's registered memory.
	//
	//	Key     the registration
	//	Offset  bytes from its start
	//	Len     bytes
	RemoteSegment = provider.RemoteSegment
	// Op is one operation. Which fields count depends on the call; the others must be zero.
	//
	//	Local    the buffer: Bytes(b), or Memory.Slice
	//	Locals   more of it, in order
	//	Peer     the other side; of a receive only with Directed
	//	Key      read, write, atomic: the peer's memory
	//	Offset   bytes from its start
	//	Remotes  instead of Key and Offset: several pieces
	//	Tag      of the tagged calls
	//	Ignore   RecvTagged: bits of the tag that may differ
	//	Data     with RemoteData
	//	Flags    which go with which call: the table at Endpoint
	//	Context  comes back in the completion
	Op = provider.Op
	// Atomic is an atomic operation on memory of a peer.
	//
	//	Op       as of other operations; Local and Locals hold the operands x
	//	Code     what becomes of each element: AtomicSum and so on
	//	Type     of the elements: Int64 and so on
	//	Compare  of AtomicSwapEq to AtomicMaskSwap: as long as the operands
	//	Result   receives the old elements, if not nil
	Atomic = provider.Atomic
	// AtomicCode is what an atomic operation does to each element: AtomicSum and so on.
	AtomicCode = provider.AtomicCode
	// DataType is the type of the elements of an atomic operation: Int64 and so on. Size is that of one element, in bytes.
	DataType = provider.DataType
	// Info describes one way to communicate, on this machine, now.
	//
	//	Provider  "shm"
	//	Version   of its protocol
	//	Domain    what is opened: a device, or "node"
	//	Usable    whether OpenDomain can succeed
	//	Why       why it cannot, or what of it is degraded
	//	Caps      what it can do
	//	Progress  the modes it can do, its default first
	//	Memory    what it asks of registration
	//	Limits    its bounds
	//	Address   the form of its addresses
	//	Features  what of the system it uses
	Info = provider.Info
	// Feature is something that a provider can use if the system has it.
	//
	//	Name    "process_vm_readv"
	//	On      whether it is used
	//	Detail  why not, or how much of it there is
	Feature = provider.Feature
	// Limits are the bounds of a provider; 0 means there is none.
	//
	//	Message    bytes of a message
	//	RMA        bytes of a read or write
	//	Inject     bytes with Inject
	//	Segments   local segments of an operation
	//	Remotes    remote segments of an operation
	//	AtomicLen  bytes of an atomic operation
	//	TagBits    usable bits of a tag
	//	DataBytes  bytes of RemoteData
	//	KeyBytes   bytes of a Key
	//	Peers      peers of an endpoint
	//	IdlePeer   bytes of memory for a peer that is idle
	Limits = provider.Limits
	// MemoryMode says what a provider asks of memory registration: libfabric's mr_mode, bit by bit. Bits names those that are set.
	//
	//	Local         FI_MR_LOCAL
	//	VirtualAddr   FI_MR_VIRT_ADDR
	//	Allocated     FI_MR_ALLOCATED
	//	ProviderKey   FI_MR_PROV_KEY
	//	Notify        FI_MR_MMU_NOTIFY: Memory.Refresh is needed
	//	Raw           FI_MR_RAW
	//	HMem          FI_MR_HMEM
	//	EndpointOnly  FI_MR_ENDPOINT
	//	Collective    FI_MR_COLLECTIVE
	//	Event         FI_MR_RMA_EVENT
	MemoryMode = provider.MemoryMode
	// Hints say what a program needs of Discover; the zero value asks for anything.
	//
	//	Provider  this one only
	//	Caps      all of these
	//	Unusable  also what cannot be used here, with the reason
	Hints = provider.Hints
	// DomainConfig says how a domain is to be; the zero value is right for most.
	//
	//	Progress  Auto or Manual
	//	Logger    hears of what a person should know; nil discards
	//	Tracer    hears of every event; nil costs nothing
	//	Memory    the most bytes of arenas; 0 means no bound
	//	Spin      how long a Wait polls before it sleeps; 0 is the provider's choice, negative never
	//	Options   the provider's own, by name: its page in docs/prov lists them
	DomainConfig = provider.DomainConfig
	// CQConfig says how long a completion queue is.
	//
	//	Size  completions that may be outstanding or unread; 0 means 4096
	CQConfig = provider.CQConfig
	// Tracer hears of each event of a domain, from any goroutine; it must not call the domain. Each field may be nil.
	//
	//	Post      an operation was accepted, or refused
	//	Complete  a completion was queued
	//	PeerUp    a peer is connected
	//	PeerGone  and gone
	//	Sleep     the progress engine goes to sleep
	//	Wake      and was woken
	Tracer = provider.Tracer
	// Stats are numbers of a domain since it was opened.
	//
	//	Sent, Received           messages
	//	BytesSent, BytesRecv     of messages
	//	Reads, Writes, Atomics   operations on peers' memory
	//	BytesRead, BytesWritten  of reads and writes
	//	Errors, Again            completions with an error; posts that got ErrAgain
	//	Wakes, Rings             times the engine was woken; doorbells this side rang
	//	Peers                    connected now
	//	Arena, ArenaMost         bytes of arenas, now and at most
	//	ArenaUsed                of them allocated
	//	Views, ViewsMost         views held, now and at most
	//	ViewBytes, OldestView    of the views held: bytes, and the age of the oldest
	Stats = provider.Stats
	// PeerStats are numbers of one peer.
	//
	//	Peer, Address         who it is
	//	State                 "new", "connecting", "connected", "gone"
	//	Path                  how bytes move
	//	Sent, Received        messages
	//	BytesSent, BytesRecv  of messages
	//	Unexpected            bytes that wait here for a receive
	//	Memory                bytes mapped for it
	//	Why                   of a peer that is gone
	PeerStats = provider.PeerStats
	// OpError is what operations fail with. Find it with errors.As, what is wrong with errors.Is.
	//
	//	Op        what was tried: "send"
	//	Provider  "shm"
	//	Addr      the peer; "" if there is none
	//	Err       wraps one of the errors below
	OpError = provider.OpError
	// TruncatedError is an ErrTruncated with the numbers.
	//
	//	Message  bytes of the message
	//	Room     bytes that were placed
	TruncatedError = provider.TruncatedError
)

// What a provider can do, or a program asks for.
const (
	Msg          = provider.Msg          // Send and Recv
	Tagged       = provider.Tagged       // SendTagged and RecvTagged, peek and claim
	RMA          = provider.RMA          // Read and Write
	Atomics      = provider.Atomics      // Atomic
	RemoteCQData = provider.RemoteCQData // 64 bits of data with a message or write
	MultiRecv    = provider.MultiRecv    // a receive that takes many messages
	DirectedRecv = provider.DirectedRecv // a receive that takes messages of one peer only
	Source       = provider.Source       // completions of receives name the peer
	Arena        = provider.Arena        // Alloc: memory that peers of the node can map
	Views        = provider.Views        // View: a peer's memory without a copy
	LocalComm    = provider.LocalComm    // reaches other processes of this node
	RemoteComm   = provider.RemoteComm   // reaches other nodes
)

// The flags of operations. Which goes with which call is in the table at Endpoint.
const (
	RemoteData       = provider.RemoteData       // carries Op.Data to the peer; a Write with it makes a completion there
	Inject           = provider.Inject           // copies the local buffer before the call returns; at most Limits.Inject bytes
	DeliveryComplete = provider.DeliveryComplete // completes when the bytes are in the receiver's buffer, or the target's memory
	Quiet            = provider.Quiet            // no completion if the operation succeeds; not with Multi or Peek
	More             = provider.More             // another post follows at once: both may be published together
	Directed         = provider.Directed         // the receive takes messages of Op.Peer only
	Multi            = provider.Multi            // the receive takes messages until less than MinMultiRecv bytes are left
	Peek             = provider.Peek             // looks for an unexpected tagged message; without a buffer. ErrNoMessage if there is none
	Claim            = provider.Claim            // with Peek: takes what it finds; without: receives what was claimed under this Context
	Discard          = provider.Discard          // with either Peek or Claim: drops the message
	Fence            = provider.Fence            // starts after all earlier operations towards the same peer have completed
)

// What peers may do with memory.
const (
	PeerRead  = provider.PeerRead  // peers read it, and map it read-only where it is an arena
	PeerWrite = provider.PeerWrite // peers write it and run atomics on it
)

// Who moves operations on.
const (
	Auto   = provider.Auto   // operations complete although the application makes no call
	Manual = provider.Manual // no goroutine: operations move in calls of the application only
)

// What a completion ends, and its flags.
const (
	SendDone    = provider.SendDone    // Send
	RecvDone    = provider.RecvDone    // Recv
	TSendDone   = provider.TSendDone   // SendTagged
	TRecvDone   = provider.TRecvDone   // RecvTagged, also a peek
	ReadDone    = provider.ReadDone    // Read
	WriteDone   = provider.WriteDone   // Write
	AtomicDone  = provider.AtomicDone  // Atomic
	RemoteWrite = provider.RemoteWrite // at the target: a peer's Write with RemoteData; Context is 0

	HasData   = provider.HasData   // Data is what the peer sent
	MultiDone = provider.MultiDone // the buffer of a Multi receive is the program's again
	Claimed   = provider.Claimed   // a peek with Claim holds the message
)

// The atomic operations; t is the element at the target, x that of the local buffer.
const (
	AtomicMin      = provider.AtomicMin      // t = min(t, x)
	AtomicMax      = provider.AtomicMax      // t = max(t, x)
	AtomicSum      = provider.AtomicSum      // t = t + x
	AtomicProd     = provider.AtomicProd     // t = t * x
	AtomicLogOr    = provider.AtomicLogOr    // t = t || x, as 0 or 1
	AtomicLogAnd   = provider.AtomicLogAnd   // t = t && x, as 0 or 1
	AtomicBitOr    = provider.AtomicBitOr    // t = t | x
	AtomicBitAnd   = provider.AtomicBitAnd   // t = t & x
	AtomicLogXor   = provider.AtomicLogXor   // t = (t != 0) != (x != 0), as 0 or 1
	AtomicBitXor   = provider.AtomicBitXor   // t = t ^ x
	AtomicRead     = provider.AtomicRead     // result = t
	AtomicWrite    = provider.AtomicWrite    // t = x
	AtomicSwapEq   = provider.AtomicSwapEq   // if t == compare: t = x
	AtomicSwapNe   = provider.AtomicSwapNe   // if t != compare: t = x
	AtomicSwapLe   = provider.AtomicSwapLe   // if compare <= t: t = x
	AtomicSwapLt   = provider.AtomicSwapLt   // if compare < t: t = x
	AtomicSwapGe   = provider.AtomicSwapGe   // if compare >= t: t = x
	AtomicSwapGt   = provider.AtomicSwapGt   // if compare > t: t = x
	AtomicMaskSwap = provider.AtomicMaskSwap // t = (x & compare) | (t &^ compare)
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
	ErrAgain        = provider.ErrAgain        // back-pressure of this side: read completions, then post again
	ErrClosed       = provider.ErrClosed       // an object that was used was closed
	ErrCancelled    = provider.ErrCancelled    // Cancel took the operation back, or Remove its peer
	ErrSignal       = provider.ErrSignal       // Signal woke the wait
	ErrPeerGone     = provider.ErrPeerGone     // the peer died, closed, or broke the protocol
	ErrUnreachable  = provider.ErrUnreachable  // nobody answers at the address, or somebody else
	ErrKey          = provider.ErrKey          // no memory of the peer has the key, or not there, or without the right
	ErrRemapped     = provider.ErrRemapped     // the memory changed under the operation
	ErrTruncated    = provider.ErrTruncated    // the buffer was too small for the message: a TruncatedError
	ErrTooLong      = provider.ErrTooLong      // above a limit of Info.Limits
	ErrNoMessage    = provider.ErrNoMessage    // a Peek found nothing
	ErrNotSupported = provider.ErrNotSupported // the provider or this machine cannot do it
	ErrInvalid      = provider.ErrInvalid      // an argument makes no sense
	ErrNoMemory     = provider.ErrNoMemory     // no memory, no descriptors, or a limit of the system
	ErrProtocol     = provider.ErrProtocol     // the peer broke the rules and is dropped
	ErrBusy         = provider.ErrBusy         // what is to be closed or opened is still in use
)

// Bytes makes a segment of raw bytes. They are copied through, or registered for this one operation.
func Bytes(b []byte) Segment { return Segment{Bytes: b} }

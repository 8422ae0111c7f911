package provider

// Kind is the operation that a completion ends.
type Kind uint8

// The kinds of completions.
const (
	SendDone    Kind = iota + 1 // Send
	RecvDone                    // Recv
	TSendDone                   // SendTagged
	TRecvDone                   // RecvTagged, also a peek
	ReadDone                    // Read
	WriteDone                   // Write
	AtomicDone                  // Atomic
	RemoteWrite                 // at the target: a peer's Write with RemoteData; Context is 0
)

var kindNames = [...]string{"none", "send", "receive", "tagged send", "tagged receive", "read", "write", "atomic", "remote write"}

// String names the operation, as errors do.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// kindFlags are the flags of the operations that end so.
var kindFlags = [...]Flags{
	SendDone:    sendFlags,
	TSendDone:   sendFlags,
	RecvDone:    Directed | Multi | Quiet | More,
	TRecvDone:   Directed | Peek | Claim | Discard | Quiet | More,
	ReadDone:    Quiet | More | Fence,
	WriteDone:   sendFlags,
	AtomicDone:  Inject | DeliveryComplete | Quiet | More | Fence,
	RemoteWrite: 0,
}

// sendFlags go with what carries bytes to a peer.
const sendFlags = RemoteData | Inject | DeliveryComplete | Quiet | More | Fence

// Flags are those that may stand with an operation that ends so; others make no sense there.
func (k Kind) Flags() Flags {
	if int(k) < len(kindFlags) {
		return kindFlags[k]
	}
	return 0
}

// CompletionFlags say more of a completion.
type CompletionFlags uint8

// The flags of completions.
const (
	HasData   CompletionFlags = 1 << iota // Data is what the peer sent
	MultiDone                             // the buffer of a Multi receive is the program's again; of a message or, with Len 0, of none
	Claimed                               // a peek with Claim holds the message
)

var completionFlagNames = []string{"data", "multi-done", "claimed"}

// Has says whether all of want are set.
func (f CompletionFlags) Has(want CompletionFlags) bool { return f&want == want }

// String lists the flags, as "data|multi-done".
func (f CompletionFlags) String() string { return bitNames(uint64(f), completionFlagNames) }

// Completion is the end of one operation. Its fields are valid as far as stated; the others are zero.
//
//	kind           Len            Tag   Data         Source          Offset
//	send, read,    bytes          -     -            the peer        -
//	 write, atomic
//	receive        bytes received -     with HasData the sender      Multi only
//	tagged receive bytes received yes   with HasData the sender      -
//	remote write   bytes written  -     yes          the initiator   -
type Completion struct {
	Context uint64
	Kind    Kind
	Flags   CompletionFlags
	Len     uint64 // bytes; of a truncated receive the bytes that were placed (TruncatedError says what there was)
	Offset  uint64 // Multi: where in the buffer the message starts
	Tag     uint64
	Data    uint64
	Source  Peer  // zero if the peer was never inserted here and Caps has no Source
	Err     error // nil for success; else an *OpError
}

package sstmsg

// Message is one SST message: a pointer to one of the structs of this package.
type Message interface{ message() string }

// Blob is a run of bytes that may lie in several pieces. A decoded Blob has at
// most one piece, a sub-slice of the record it came from.
type Blob [][]byte

// Bytes returns the blob as one slice, copying only if it has several pieces.
func (b Blob) Bytes() []byte {
	switch len(b) {
	case 0:
		return nil
	case 1:
		return b[0]
	}
	out := make([]byte, 0, b.Len())
	for _, p := range b {
		out = append(out, p...)
	}
	return out
}

// Len returns the number of bytes.
func (b Blob) Len() int {
	n := 0
	for _, p := range b {
		n += len(p)
	}
	return n
}

// ByteBlob makes a Blob of one piece, or none for no bytes.
func ByteBlob(b []byte) Blob {
	if len(b) == 0 {
		return nil
	}
	return Blob{b}
}

// DPQuery asks the writer for its data plane. Reader rank 0 to writer rank 0.
type DPQuery struct {
	WriterID  int64 `ffs:"writer_ID,integer,8"`
	Condition int32 `ffs:"writer_response_condition,integer,4"`
	Weft      int32 `ffs:"weft_version,integer,4" only:"weft"` // design: the reader is Weft and speaks this version

	// Planes are the data planes that the reader has, best first, with commas in
	// between; "", which an older Weft and ADIOS2 say: evpath alone.
	Planes string `ffs:"weft_planes,string,8" only:"weft"`
}

// DPQueryResponse names the data plane that the reader must use. ADIOS2 has one for
// all readers of a stream, Weft chooses for each.
type DPQueryResponse struct {
	Condition int32  `ffs:"writer_response_condition,integer,4"`
	DataPlane string `ffs:"writer_data_plane,string,8"`
}

// ReaderRegister announces a reader cohort. Exactly one of Evpath and Rdma is
// set; it decides the format.
type ReaderRegister struct {
	WriterID    int64          `ffs:"writer_ID,integer,8"`
	Condition   int32          `ffs:"writer_response_condition,integer,4"`
	CohortSize  struct{}       `ffs:"ReaderCohortSize,integer,4" counts:"CP"`
	SpecPreload int32          `ffs:"SpecPreload,integer,4"`
	CP          []CPReader     `ffs:"CP_ReaderInfo,(*cp_reader)[ReaderCohortSize],8"`
	Evpath      []EvpathReader `ffs:"DP_ReaderInfo,(*EvpathReaderContactInfo)[ReaderCohortSize],8" plane:"evpath"`
	Rdma        []RdmaReader   `ffs:"DP_ReaderInfo,(*RdmaReaderContactInfo)[ReaderCohortSize],8" plane:"rdma"`
	Observer    int32          `ffs:"weft_observer,integer,4" only:"weft"` // design: 1 for a reader that only looks, and holds nobody up
	Plane       string         `ffs:"weft_plane,string,8" only:"weft"`     // the data plane that the writer has answered; "": evpath
}

// CPReader is the control contact of one reader rank.
type CPReader struct {
	Contact  string `ffs:"ContactInfo,string,8"`
	ReaderID int64  `ffs:"reader_ID,integer,8"`
}

// EvpathReader is the data contact of one reader rank.
type EvpathReader struct {
	Contact  string   `ffs:"ContactString,string,8"`
	Unused   struct{} `pad:"8"`
	ReaderID int64    `ffs:"reader_ID,integer,8"`
}

// RdmaReader is the fabric address of one reader rank.
type RdmaReader struct {
	ReaderID int64    `ffs:"reader_ID,integer,8"`
	Length   struct{} `ffs:"Length,integer,4" counts:"Address"`
	Address  Blob     `ffs:"Address,integer[Length],1"`
}

// PeerSetup tells a reader rank which writer rank a connection belongs to
// (Peer pattern only).
type PeerSetup struct {
	ReaderID   int64 `ffs:"RS_Stream,integer,8"`
	WriterRank int32 `ffs:"WriterRank,integer,4"` // -1: for failure detection only
	CohortSize int32 `ffs:"WriterCohortSize,integer,4"`
}

// WriterResponse accepts a reader. Exactly one of Evpath and Rdma is set.
type WriterResponse struct {
	Condition  int32          `ffs:"WriterResponseCondition,integer,4"`
	CohortSize struct{}       `ffs:"WriterCohortSize,integer,4" counts:"CP"`
	Params     *Params        `ffs:"WriterConfigParams,*SstParams,0"`
	NextStep   int64          `ffs:"NextStepNumber,integer,8"`
	CP         []CPWriter     `ffs:"cp_WriterInfo,(*cp_writer)[WriterCohortSize],8"`
	Evpath     []EvpathWriter `ffs:"dp_WriterInfo,(*EvpathWriterContactInfo)[WriterCohortSize],8" plane:"evpath"`
	Rdma       []RdmaWriter   `ffs:"dp_WriterInfo,(*RdmaWriterContactInfo)[WriterCohortSize],8" plane:"rdma"`

	// Native is for a reader of the native plane: how the process of each writer rank
	// is reached. For others it is nil.
	Native []NativeWriter `ffs:"weft_native,weft_native_writer[WriterCohortSize],8" plane:"evpath" only:"weft"`
}

// NativeWriter is the native contact of one writer rank: a text that package
// sst/internal/native makes and reads, "" for a process that has none.
type NativeWriter struct {
	Contact string `ffs:"contact,string,8"`
}

// CPWriter is the control contact of one writer rank.
type CPWriter struct {
	Contact  string `ffs:"ContactInfo,string,8"`
	WriterID int64  `ffs:"WriterID,integer,8"`
}

// EvpathWriter is the data-plane identity of one writer rank. Contact is a text
// for people; real readers never parse it but crash if it is NULL.
type EvpathWriter struct {
	Contact  string `ffs:"ContactString,string,8"`
	WriterID int64  `ffs:"writer_ID,integer,8"`
}

// RdmaWriter is the fabric address of one writer rank.
type RdmaWriter struct {
	WriterID int64      `ffs:"writer_ID,integer,8"`
	Length   struct{}   `ffs:"Length,integer,4" counts:"Address"`
	Address  Blob       `ffs:"Address,integer[Length],1"`
	Roll     RdmaBuffer `ffs:"ReaderRollHandle,RdmaBufferHandle,16"`
}

// RdmaBuffer names registered memory: its address and key.
type RdmaBuffer struct {
	Block int64 `ffs:"Block,integer,8"`
	Key   int64 `ffs:"Key,integer,8"`
}

// ReaderPlane says which data plane a reader of the native one turns out to have:
// how many of the writer's processes it reaches. It comes before ReaderActivate,
// and goes to Weft writers only.
type ReaderPlane struct {
	WriterID int64  `ffs:"WSR_Stream,integer,8"`
	Plane    string `ffs:"plane,string,8"`
	// Alone, if it is not 0, is the reader's stream, to which the writer answers with this
	// message: the link that it came over is the only one from then on.
	Alone int64 `ffs:"alone,integer,8"`
}

// ReaderActivate ends the opening: the writer may send steps.
type ReaderActivate struct {
	WriterID int64 `ffs:"WSR_Stream,integer,8"`
}

// ReaderRequestStep asks for one step (OnDemand distribution).
type ReaderRequestStep struct {
	WriterID int64 `ffs:"WSR_Stream,integer,8"`
}

// TimestepMetadata hands a step to a reader; Metadata is nil for a discarded
// step. Attributes must never be nil: real readers look at element 0.
type TimestepMetadata struct {
	ReaderID    int64         `ffs:"RS_Stream,integer,8"`
	Step        int64         `ffs:"timestep,integer,8" old:"4"`
	CohortSize  int32         `ffs:"cohort_size,integer,4"`
	PreloadMode int32         `ffs:"preload_mode,integer,4"`
	Formats     []FormatBlock `ffs:"formats,*FFSFormatBlock,0" list:"Next"`
	Metadata    []Block       `ffs:"metadata,SstBlock[cohort_size],16"`
	Attributes  []Block       `ffs:"attribute_data,SstBlock[cohort_size],16"`
	Rdma        []RdmaBuffer  `ffs:"TP_TimestepInfo,(*RdmaBufferHandle)[cohort_size],8" plane:"rdma"`
	Unused      struct{}      `pad:"8" plane:"evpath"`

	// Native says for each writer rank which bytes of its data block lie where in
	// its process's memory (the layout is package sst/internal/dp's); an empty one says
	// nothing. It is nil for readers that do not look there, and for a step that lies
	// nowhere to look at.
	Native []Block `ffs:"weft_native,SstBlock[cohort_size],16" plane:"evpath" only:"weft"`
}

// Block is one writer rank's metadata or attribute record.
type Block struct {
	Size struct{} `ffs:"BlockSize,integer,8" counts:"Data"`
	Data Blob     `ffs:"BlockData,char[BlockSize],1"`
}

// FormatBlock is one FFS format that steps use. On the wire the blocks form a
// linked list.
type FormatBlock struct {
	Body       Blob     `ffs:"FormatServerRep,char[FormatServerRepLen],1"`
	BodyLength struct{} `ffs:"FormatServerRepLen,integer,8" counts:"Body"`
	ID         Blob     `ffs:"FormatIDRep,char[FormatIDRepLen],1"`
	IDLength   struct{} `ffs:"FormatIDRepLen,integer,8" counts:"ID"`
	Next       struct{} `ffs:"Next,*FFSFormatBlock,0" link:"true"`
}

// ReleaseTimestep gives a step back to the writer.
type ReleaseTimestep struct {
	WriterID int64 `ffs:"WSR_Stream,integer,8"`
	Step     int64 `ffs:"Timestep,integer,8" old:"4"`
}

// LockReaderDefinitions says that the reader's selections will not change.
type LockReaderDefinitions struct {
	WriterID int64 `ffs:"WSR_Stream,integer,8"`
	Step     int64 `ffs:"Timestep,integer,8" old:"4"`
}

// CommPatternLocked says that learned preload begins with the step.
type CommPatternLocked struct {
	ReaderID int64 `ffs:"RS_Stream,integer,8"`
	Step     int64 `ffs:"Timestep,integer,8" old:"4"`
}

// WriterClose announces the last step, -1 if there was none.
type WriterClose struct {
	ReaderID  int64  `ffs:"RS_Stream,integer,8"`
	FinalStep int64  `ffs:"FinalTimestep,integer,8" old:"4"`
	Code      int32  `ffs:"weft_code,integer,4" only:"weft"`  // design: why the stream ends for this reader, one of Close...
	Reason    string `ffs:"weft_reason,string,8" only:"weft"` // design: the same for people, "" for CloseNormal
}

// Codes of WriterClose between Weft peers.
const (
	CloseNormal  = 0 // no step follows
	CloseEvicted = 1 // the reader lagged too far behind
	CloseFailed  = 2 // the writer failed
)

// ReaderClose says that the reader leaves.
type ReaderClose struct {
	WriterID int64 `ffs:"WSR_Stream,integer,8"`
}

// ReadRequest asks a writer rank for bytes of its data block of a step
// (evpath plane).
type ReadRequest struct {
	Step      int64 `ffs:"Timestep,integer,8"`
	Offset    int64 `ffs:"Offset,integer,8"`
	Length    int64 `ffs:"Length,integer,8"`
	WriterID  int64 `ffs:"WS_Stream,integer,8"`
	ReaderID  int64 `ffs:"RS_Stream,integer,8"`
	Rank      int32 `ffs:"RequestingRank,integer,4"` // the writer indexes with it: below the cohort size
	Condition int32 `ffs:"NotifyCondition,integer,4"`
}

// ReadReply answers a ReadRequest.
type ReadReply struct {
	Step      int64    `ffs:"Timestep,integer,8"`
	Length    struct{} `ffs:"DataLength,integer,8" counts:"Data"`
	ReaderID  int64    `ffs:"RS_Stream,integer,8"`
	Data      Blob     `ffs:"Data,char[DataLength],1"`
	Condition int32    `ffs:"NotifyCondition,integer,4"`
}

// Preload pushes a writer rank's whole data block of a step.
type Preload struct {
	Step       int64    `ffs:"Timestep,integer,8"`
	Length     struct{} `ffs:"DataLength,integer,8" counts:"Data"`
	WriterRank int64    `ffs:"WriterRank,integer,8"`
	ReaderID   int64    `ffs:"RS_Stream,integer,8"`
	Data       Blob     `ffs:"Data,char[DataLength],1"`
}

// StatQuery asks a Weft writer what it is doing (see docs/wire/sst.md, "Additions").
// Who asks is no reader: nothing is registered, and nothing waits for it. It is
// sent to writers whose contact has Weft's mark, and to no other.
type StatQuery struct {
	WriterID  int64 `ffs:"writer_ID,integer,8"`
	Condition int32 `ffs:"condition,integer,4"`
	What      int32 `ffs:"what,integer,4"` // one of Stat...
}

// What a StatQuery asks for.
const (
	StatAll = 0 // everything that the writer tells; so is any number that a writer does not know
)

// StatReply answers a StatQuery. Text is a JSON object, or nothing if the stream
// has ended.
type StatReply struct {
	Condition int32    `ffs:"condition,integer,4"`
	Length    struct{} `ffs:"length,integer,8" counts:"Text"`
	Text      Blob     `ffs:"text,char[length],1"`
}

func (*DPQuery) message() string               { return "DPQuery" }
func (*DPQueryResponse) message() string       { return "DPQueryResponse" }
func (*ReaderRegister) message() string        { return "ReaderRegister" }
func (*PeerSetup) message() string             { return "PeerSetup" }
func (*WriterResponse) message() string        { return "WriterResponse" }
func (*ReaderPlane) message() string           { return "weft_reader_plane" }
func (*ReaderActivate) message() string        { return "ReaderActivate" }
func (*ReaderRequestStep) message() string     { return "ReaderRequestStep" }
func (*TimestepMetadata) message() string      { return "timestepMetadata" }
func (*ReleaseTimestep) message() string       { return "ReleaseTimestep" }
func (*LockReaderDefinitions) message() string { return "LockReaderDefinitions" }
func (*CommPatternLocked) message() string     { return "CommPatternLocked" }
func (*WriterClose) message() string           { return "WriterClose" }
func (*ReaderClose) message() string           { return "ReaderClose" }
func (*ReadRequest) message() string           { return "EvpathReadRequest" }
func (*ReadReply) message() string             { return "EvpathReadReply" }
func (*Preload) message() string               { return "EvpathPreload" }
func (*StatQuery) message() string             { return "weft_stat_query" }
func (*StatReply) message() string             { return "weft_stat_reply" }

// Name returns the name of m's format on the wire.
func Name(m Message) string { return m.message() }

// newMessage returns an empty message of the named format, nil if unknown.
func newMessage(format string) Message {
	switch format {
	case "DPQuery":
		return new(DPQuery)
	case "DPQueryResponse":
		return new(DPQueryResponse)
	case "ReaderRegister":
		return new(ReaderRegister)
	case "PeerSetup":
		return new(PeerSetup)
	case "WriterResponse":
		return new(WriterResponse)
	case "weft_reader_plane":
		return new(ReaderPlane)
	case "ReaderActivate":
		return new(ReaderActivate)
	case "ReaderRequestStep":
		return new(ReaderRequestStep)
	case "timestepMetadata":
		return new(TimestepMetadata)
	case "ReleaseTimestep":
		return new(ReleaseTimestep)
	case "LockReaderDefinitions":
		return new(LockReaderDefinitions)
	case "CommPatternLocked":
		return new(CommPatternLocked)
	case "WriterClose":
		return new(WriterClose)
	case "ReaderClose":
		return new(ReaderClose)
	case "EvpathReadRequest":
		return new(ReadRequest)
	case "EvpathReadReply":
		return new(ReadReply)
	case "EvpathPreload":
		return new(Preload)
	case "weft_stat_query":
		return new(StatQuery)
	case "weft_stat_reply":
		return new(StatReply)
	}
	return nil
}

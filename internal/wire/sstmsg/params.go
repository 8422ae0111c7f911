package sstmsg

// Release names a range of ADIOS2 releases that share the field set of the
// messages. Releases of different ranges do not understand each other.
type Release uint8

// Releases, by their newest member.
const (
	Release210  Release = iota // 2.9.0 to 2.10.2
	Release212                 // 2.11.0 to 2.12.1
	ReleaseMain                // the development branch after 2.12.1
	releases
)

// String returns "2.10", "2.12" or "main".
func (r Release) String() string {
	return [...]string{"2.10", "2.12", "main", "unknown"}[min(r, releases)]
}

// Params are the writer's engine parameters as WriterResponse carries them, in
// wire order. An empty string is sent as NULL. The meaning of the numbers:
// docs/wire/sst.md §4.
type Params struct {
	MarshalMethod               int64  `ffs:"MarshalMethod,integer,8"`
	Verbose                     int32  `ffs:"verbose,integer,4"`
	RegistrationMethod          int64  `ffs:"RegistrationMethod,integer,8"`
	StepDistributionMode        int64  `ffs:"StepDistributionMode,integer,8"`
	DataTransport               string `ffs:"DataTransport,string,8"`
	WANDataTransport            string `ffs:"WANDataTransport,string,8"`
	MercuryProtocol             string `ffs:"MercuryProtocol,string,8" since:"main"`
	OpenTimeoutSecs             int32  `ffs:"OpenTimeoutSecs,integer,4"`
	RendezvousReaderCount       int32  `ffs:"RendezvousReaderCount,integer,4"`
	QueueLimit                  int32  `ffs:"QueueLimit,integer,4"`
	ReserveQueueLimit           int32  `ffs:"ReserveQueueLimit,integer,4"`
	QueueFullPolicy             int64  `ffs:"QueueFullPolicy,integer,8"`
	IsRowMajor                  int32  `ffs:"IsRowMajor,integer,4"`
	FirstTimestepPrecious       int32  `ffs:"FirstTimestepPrecious,integer,4"`
	ControlTransport            string `ffs:"ControlTransport,string,8"`
	NetworkInterface            string `ffs:"NetworkInterface,string,8"`
	ControlInterface            string `ffs:"ControlInterface,string,8"`
	DataInterface               string `ffs:"DataInterface,string,8"`
	CPCommPattern               int64  `ffs:"CPCommPattern,integer,8"`
	CompressionMethod           int64  `ffs:"CompressionMethod,integer,8"`
	AlwaysProvideLatestTimestep int32  `ffs:"AlwaysProvideLatestTimestep,integer,4"`
	SpeculativePreloadMode      int32  `ffs:"SpeculativePreloadMode,integer,4"`
	SpecAutoNodeThreshold       int32  `ffs:"SpecAutoNodeThreshold,integer,4"`
	ReaderShortCircuitReads     int32  `ffs:"ReaderShortCircuitReads,integer,4"`
	StatsLevel                  int32  `ffs:"StatsLevel,integer,4"`
	UseOneTimeAttributes        int32  `ffs:"UseOneTimeAttributes,integer,4"`
	RemoteGroup                 string `ffs:"RemoteGroup,string,8" since:"2.12"`
	ControlModule               string `ffs:"ControlModule,string,8"`
}

// Values of Params fields that a reader acts on.
const (
	MarshalBP5    = 2
	PatternMin    = 0
	PatternPeer   = 1
	DistributeAll = 0
)

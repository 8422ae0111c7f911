package ffs

import (
	"slices"
	"testing"
)

// knownFormats are control messages of SST as ADIOS2 declares them, with the
// IDs that it sends them under (docs/wire/ffs.md §3). The structs behind the
// top one are in the order of the body.
func knownFormats() []knownFormat {
	return []knownFormat{
		{"02000023086cf383af9fc397", []Struct{
			{Name: "DPQuery", RecordLen: 16, Fields: []Field{
				{"writer_ID", "integer", 8, 0},
				{"writer_response_condition", "integer", 4, 8},
			}},
		}},
		{"02000027d02ddad87f49360d", []Struct{
			{Name: "DPQueryResponse", RecordLen: 16, Fields: []Field{
				{"writer_response_condition", "integer", 4, 0},
				{"writer_data_plane", "string", 8, 8},
			}},
		}},
		{"0200003c65fc5841dfb012e0", []Struct{
			{Name: "EvpathPreload", RecordLen: 40, Fields: []Field{
				{"Timestep", "integer", 8, 0},
				{"DataLength", "integer", 8, 8},
				{"WriterRank", "integer", 8, 16},
				{"RS_Stream", "integer", 8, 24},
				{"Data", "char[DataLength]", 1, 32},
			}},
		}},
		{"0200003de1904eb953f0b3a6", []Struct{
			{Name: "EvpathReadReply", RecordLen: 40, Fields: []Field{
				{"Timestep", "integer", 8, 0},
				{"DataLength", "integer", 8, 8},
				{"RS_Stream", "integer", 8, 16},
				{"Data", "char[DataLength]", 1, 24},
				{"NotifyCondition", "integer", 4, 32},
			}},
		}},
		{"0200004dad3a9da6db8ed1c2", []Struct{
			{Name: "EvpathReadRequest", RecordLen: 48, Fields: []Field{
				{"Timestep", "integer", 8, 0},
				{"Offset", "integer", 8, 8},
				{"Length", "integer", 8, 16},
				{"WS_Stream", "integer", 8, 24},
				{"RS_Stream", "integer", 8, 32},
				{"RequestingRank", "integer", 4, 40},
				{"NotifyCondition", "integer", 4, 44},
			}},
		}},
		{"0200002389aacf848deb6fdd", []Struct{
			{Name: "LockReaderDefinitions", RecordLen: 16, Fields: []Field{
				{"WSR_Stream", "integer", 8, 0},
				{"Timestep", "integer", 8, 8},
			}},
		}},
		{"0200002ab48afd5780b2b510", []Struct{
			{Name: "PeerSetup", RecordLen: 16, Fields: []Field{
				{"RS_Stream", "integer", 8, 0},
				{"WriterRank", "integer", 4, 8},
				{"WriterCohortSize", "integer", 4, 12},
			}},
		}},
		{"0200009a40c4fcb4249a0787", []Struct{
			{Name: "ReaderRegister", RecordLen: 40, Fields: []Field{
				{"writer_ID", "integer", 8, 0},
				{"writer_response_condition", "integer", 4, 8},
				{"ReaderCohortSize", "integer", 4, 12},
				{"SpecPreload", "integer", 4, 16},
				{"CP_ReaderInfo", "(*cp_reader)[ReaderCohortSize]", 16, 24},
				{"DP_ReaderInfo", "(*EvpathReaderContactInfo)[ReaderCohortSize]", 24, 32},
			}},
			{Name: "cp_reader", RecordLen: 16, Fields: []Field{
				{"ContactInfo", "string", 8, 0},
				{"reader_ID", "integer", 8, 8},
			}},
			{Name: "EvpathReaderContactInfo", RecordLen: 24, Fields: []Field{
				{"ContactString", "string", 8, 0},
				{"reader_ID", "integer", 8, 16},
			}},
		}},
		{"020000a271119b6f29cc3dbc", []Struct{
			{Name: "ReaderRegister", RecordLen: 40, Fields: []Field{
				{"writer_ID", "integer", 8, 0},
				{"writer_response_condition", "integer", 4, 8},
				{"ReaderCohortSize", "integer", 4, 12},
				{"SpecPreload", "integer", 4, 16},
				{"CP_ReaderInfo", "(*cp_reader)[ReaderCohortSize]", 16, 24},
				{"DP_ReaderInfo", "(*RdmaReaderContactInfo)[ReaderCohortSize]", 24, 32},
			}},
			{Name: "cp_reader", RecordLen: 16, Fields: []Field{
				{"ContactInfo", "string", 8, 0},
				{"reader_ID", "integer", 8, 8},
			}},
			{Name: "RdmaReaderContactInfo", RecordLen: 24, Fields: []Field{
				{"reader_ID", "integer", 8, 0},
				{"Length", "integer", 4, 8},
				{"Address", "integer[Length]", 1, 16},
			}},
		}},
		{"0200001afc2958ba4cbc742f", []Struct{
			{Name: "ReaderRequestStep", RecordLen: 8, Fields: []Field{
				{"WSR_Stream", "integer", 8, 0},
			}},
		}},
		{"020000210ee2118818d8303a", []Struct{
			{Name: "ReleaseTimestep", RecordLen: 16, Fields: []Field{
				{"WSR_Stream", "integer", 8, 0},
				{"Timestep", "integer", 8, 8},
			}},
		}},
		{"020000219285bc284493773b", []Struct{
			{Name: "ReleaseTimestep", RecordLen: 16, Fields: []Field{
				{"WSR_Stream", "integer", 8, 0},
				{"Timestep", "integer", 4, 8},
			}},
		}},
		{"020001b50c2558a16c326550", []Struct{
			{Name: "WriterResponse", RecordLen: 40, Fields: []Field{
				{"WriterResponseCondition", "integer", 4, 0},
				{"WriterCohortSize", "integer", 4, 4},
				{"WriterConfigParams", "*SstParams", 160, 8},
				{"NextStepNumber", "integer", 8, 16},
				{"cp_WriterInfo", "(*cp_writer)[WriterCohortSize]", 16, 24},
				{"dp_WriterInfo", "(*EvpathWriterContactInfo)[WriterCohortSize]", 16, 32},
			}},
			{Name: "cp_writer", RecordLen: 16, Fields: []Field{
				{"ContactInfo", "string", 8, 0},
				{"WriterID", "integer", 8, 8},
			}},
			{Name: "SstParams", RecordLen: 160, Fields: []Field{
				{"MarshalMethod", "integer", 8, 0},
				{"verbose", "integer", 4, 8},
				{"RegistrationMethod", "integer", 8, 16},
				{"StepDistributionMode", "integer", 8, 24},
				{"DataTransport", "string", 8, 32},
				{"WANDataTransport", "string", 8, 40},
				{"OpenTimeoutSecs", "integer", 4, 48},
				{"RendezvousReaderCount", "integer", 4, 52},
				{"QueueLimit", "integer", 4, 56},
				{"ReserveQueueLimit", "integer", 4, 60},
				{"QueueFullPolicy", "integer", 8, 64},
				{"IsRowMajor", "integer", 4, 72},
				{"FirstTimestepPrecious", "integer", 4, 76},
				{"ControlTransport", "string", 8, 80},
				{"NetworkInterface", "string", 8, 88},
				{"ControlInterface", "string", 8, 96},
				{"DataInterface", "string", 8, 104},
				{"CPCommPattern", "integer", 8, 112},
				{"CompressionMethod", "integer", 8, 120},
				{"AlwaysProvideLatestTimestep", "integer", 4, 128},
				{"SpeculativePreloadMode", "integer", 4, 132},
				{"SpecAutoNodeThreshold", "integer", 4, 136},
				{"ReaderShortCircuitReads", "integer", 4, 140},
				{"StatsLevel", "integer", 4, 144},
				{"UseOneTimeAttributes", "integer", 4, 148},
				{"ControlModule", "string", 8, 152},
			}},
			{Name: "EvpathWriterContactInfo", RecordLen: 16, Fields: []Field{
				{"ContactString", "string", 8, 0},
				{"writer_ID", "integer", 8, 8},
			}},
		}},
		{"020001c8d29bf3b2b81b92b8", []Struct{
			{Name: "WriterResponse", RecordLen: 40, Fields: []Field{
				{"WriterResponseCondition", "integer", 4, 0},
				{"WriterCohortSize", "integer", 4, 4},
				{"WriterConfigParams", "*SstParams", 176, 8},
				{"NextStepNumber", "integer", 8, 16},
				{"cp_WriterInfo", "(*cp_writer)[WriterCohortSize]", 16, 24},
				{"dp_WriterInfo", "(*EvpathWriterContactInfo)[WriterCohortSize]", 16, 32},
			}},
			{Name: "cp_writer", RecordLen: 16, Fields: []Field{
				{"ContactInfo", "string", 8, 0},
				{"WriterID", "integer", 8, 8},
			}},
			{Name: "SstParams", RecordLen: 176, Fields: []Field{
				{"MarshalMethod", "integer", 8, 0},
				{"verbose", "integer", 4, 8},
				{"RegistrationMethod", "integer", 8, 16},
				{"StepDistributionMode", "integer", 8, 24},
				{"DataTransport", "string", 8, 32},
				{"WANDataTransport", "string", 8, 40},
				{"MercuryProtocol", "string", 8, 48},
				{"OpenTimeoutSecs", "integer", 4, 56},
				{"RendezvousReaderCount", "integer", 4, 60},
				{"QueueLimit", "integer", 4, 64},
				{"ReserveQueueLimit", "integer", 4, 68},
				{"QueueFullPolicy", "integer", 8, 72},
				{"IsRowMajor", "integer", 4, 80},
				{"FirstTimestepPrecious", "integer", 4, 84},
				{"ControlTransport", "string", 8, 88},
				{"NetworkInterface", "string", 8, 96},
				{"ControlInterface", "string", 8, 104},
				{"DataInterface", "string", 8, 112},
				{"CPCommPattern", "integer", 8, 120},
				{"CompressionMethod", "integer", 8, 128},
				{"AlwaysProvideLatestTimestep", "integer", 4, 136},
				{"SpeculativePreloadMode", "integer", 4, 140},
				{"SpecAutoNodeThreshold", "integer", 4, 144},
				{"ReaderShortCircuitReads", "integer", 4, 148},
				{"StatsLevel", "integer", 4, 152},
				{"UseOneTimeAttributes", "integer", 4, 156},
				{"RemoteGroup", "string", 8, 160},
				{"ControlModule", "string", 8, 168},
			}},
			{Name: "EvpathWriterContactInfo", RecordLen: 16, Fields: []Field{
				{"ContactString", "string", 8, 0},
				{"writer_ID", "integer", 8, 8},
			}},
		}},
		{"020000bd9b75bb4fda015d21", []Struct{
			{Name: "timestepMetadata", RecordLen: 56, Fields: []Field{
				{"RS_Stream", "integer", 8, 0},
				{"timestep", "integer", 8, 8},
				{"cohort_size", "integer", 4, 16},
				{"preload_mode", "integer", 4, 20},
				{"formats", "*FFSFormatBlock", 40, 24},
				{"metadata", "SstBlock[cohort_size]", 16, 32},
				{"attribute_data", "SstBlock[cohort_size]", 16, 40},
			}},
			{Name: "SstBlock", RecordLen: 16, Fields: []Field{
				{"BlockSize", "integer", 8, 0},
				{"BlockData", "char[BlockSize]", 1, 8},
			}},
			{Name: "FFSFormatBlock", RecordLen: 40, Fields: []Field{
				{"FormatServerRep", "char[FormatServerRepLen]", 1, 0},
				{"FormatServerRepLen", "integer", 8, 8},
				{"FormatIDRep", "char[FormatIDRepLen]", 1, 16},
				{"FormatIDRepLen", "integer", 8, 24},
				{"Next", "*FFSFormatBlock", 40, 32},
			}},
		}},
		{"020000bde3fc3837570f06ab", []Struct{
			{Name: "timestepMetadata", RecordLen: 56, Fields: []Field{
				{"RS_Stream", "integer", 8, 0},
				{"timestep", "integer", 4, 8},
				{"cohort_size", "integer", 4, 12},
				{"preload_mode", "integer", 4, 16},
				{"formats", "*FFSFormatBlock", 40, 24},
				{"metadata", "SstBlock[cohort_size]", 16, 32},
				{"attribute_data", "SstBlock[cohort_size]", 16, 40},
			}},
			{Name: "SstBlock", RecordLen: 16, Fields: []Field{
				{"BlockSize", "integer", 8, 0},
				{"BlockData", "char[BlockSize]", 1, 8},
			}},
			{Name: "FFSFormatBlock", RecordLen: 40, Fields: []Field{
				{"FormatServerRep", "char[FormatServerRepLen]", 1, 0},
				{"FormatServerRepLen", "integer", 8, 8},
				{"FormatIDRep", "char[FormatIDRepLen]", 1, 16},
				{"FormatIDRepLen", "integer", 8, 24},
				{"Next", "*FFSFormatBlock", 40, 32},
			}},
		}},
		{"020000ead45ccac57f5015e8", []Struct{
			{Name: "timestepMetadata", RecordLen: 56, Fields: []Field{
				{"RS_Stream", "integer", 8, 0},
				{"timestep", "integer", 8, 8},
				{"cohort_size", "integer", 4, 16},
				{"preload_mode", "integer", 4, 20},
				{"formats", "*FFSFormatBlock", 40, 24},
				{"metadata", "SstBlock[cohort_size]", 16, 32},
				{"attribute_data", "SstBlock[cohort_size]", 16, 40},
				{"TP_TimestepInfo", "(*RdmaBufferHandle)[cohort_size]", 16, 48},
			}},
			{Name: "SstBlock", RecordLen: 16, Fields: []Field{
				{"BlockSize", "integer", 8, 0},
				{"BlockData", "char[BlockSize]", 1, 8},
			}},
			{Name: "RdmaBufferHandle", RecordLen: 16, Fields: []Field{
				{"Block", "integer", 8, 0},
				{"Key", "integer", 8, 8},
			}},
			{Name: "FFSFormatBlock", RecordLen: 40, Fields: []Field{
				{"FormatServerRep", "char[FormatServerRepLen]", 1, 0},
				{"FormatServerRepLen", "integer", 8, 8},
				{"FormatIDRep", "char[FormatIDRepLen]", 1, 16},
				{"FormatIDRepLen", "integer", 8, 24},
				{"Next", "*FFSFormatBlock", 40, 32},
			}},
		}},
	}
}

type knownFormat struct {
	id      string
	structs []Struct
}

// Building a message's structs gives the ID that ADIOS2 has for it, in whatever
// order Ordered is given them.
func TestBuildKnown(t *testing.T) {
	for _, k := range knownFormats() {
		name := k.structs[0].Name
		f, err := New(k.structs...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.ID().String() != k.id || f.Name() != name {
			t.Errorf("%s: ID %v, want %s", name, f.ID(), k.id)
		}
		subs := slices.Clone(k.structs[1:])
		for range 2 {
			g, err := Ordered(k.structs[0], subs...)
			if err != nil || g.ID() != f.ID() {
				t.Errorf("%s: ordered: ID %v, want %s: %v", name, g.ID(), k.id, err)
			}
			slices.Reverse(subs)
		}
	}
}

// Any change to a description is another format.
func TestIDChanges(t *testing.T) {
	base, err := New(knownFormats()[0].structs...)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(s *Struct){
		"name":          func(s *Struct) { s.Name += "x" },
		"record length": func(s *Struct) { s.RecordLen += 8 },
		"alignment":     func(s *Struct) { s.Align = 4 },
		"field name":    func(s *Struct) { s.Fields[0].Name = "reader_ID" },
		"field type":    func(s *Struct) { s.Fields[0].Type = "unsigned integer" },
		"field size":    func(s *Struct) { s.Fields[0].Size = 4 },
		"field offset":  func(s *Struct) { s.Fields[1].Offset = 12 },
		"one field":     func(s *Struct) { s.Fields = s.Fields[:1] },
	} {
		s := knownFormats()[0].structs
		change(&s[0])
		f, err := New(s...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if f.ID() == base.ID() {
			t.Errorf("%s: the ID is still the same", what)
		}
	}
}

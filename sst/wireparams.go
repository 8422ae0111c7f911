package sst

import (
	"strconv"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// WriterParams returns the engine parameters of the writer, as it told when
// this reader attached. Set means that a value is not ADIOS2's default: whether
// somebody gave it is not told. DataTransport is the plane in use.
func (r *Reader) WriterParams() []EffectiveParam {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.response == nil || r.response.Params == nil {
		return nil
	}
	return wireValues(r.response.Params)
}

// wireParam is one parameter of the writer as the protocol has it.
type wireParam struct {
	name, def string
	value     func(*sstmsg.Params) string
}

func wireInt[T int32 | int64](name, def string, field func(*sstmsg.Params) T) wireParam {
	return wireParam{name, def, func(p *sstmsg.Params) string { return strconv.FormatInt(int64(field(p)), 10) }}
}

// wireWord is a number that has names. One without a name is shown as it is.
func wireWord[T int32 | int64](name, def string, field func(*sstmsg.Params) T, words ...string) wireParam {
	return wireParam{name, def, func(p *sstmsg.Params) string {
		n := int64(field(p))
		if n >= 0 && n < int64(len(words)) {
			return words[n]
		}
		return strconv.FormatInt(n, 10)
	}}
}

func wireText(name, def string, field func(*sstmsg.Params) string) wireParam {
	return wireParam{name, def, field}
}

// wireTable is docs/wire/sst.md §4, with ADIOS2's defaults.
var wireTable = []wireParam{
	wireInt("RendezvousReaderCount", "1", func(p *sstmsg.Params) int32 { return p.RendezvousReaderCount }),
	wireWord("RegistrationMethod", "File", func(p *sstmsg.Params) int64 { return p.RegistrationMethod }, "File", "Screen", "Cloud"),
	wireInt("QueueLimit", "0", func(p *sstmsg.Params) int32 { return p.QueueLimit }),
	wireWord("QueueFullPolicy", "Block", func(p *sstmsg.Params) int64 { return p.QueueFullPolicy }, "Block", "Discard"),
	wireInt("ReserveQueueLimit", "0", func(p *sstmsg.Params) int32 { return p.ReserveQueueLimit }),
	wireWord("FirstTimestepPrecious", "false", func(p *sstmsg.Params) int32 { return p.FirstTimestepPrecious }, "false", "true"),
	wireWord("StepDistributionMode", "AllToAll", func(p *sstmsg.Params) int64 { return p.StepDistributionMode }, "AllToAll", "RoundRobin", "OnDemand"),
	wireWord("CPCommPattern", "Min", func(p *sstmsg.Params) int64 { return p.CPCommPattern }, "Min", "Peer"),
	wireWord("MarshalMethod", "BP5", func(p *sstmsg.Params) int64 { return p.MarshalMethod }, "FFS", "BP", "BP5"),
	wireText("DataTransport", "", func(p *sstmsg.Params) string { return p.DataTransport }),
	wireText("WANDataTransport", "", func(p *sstmsg.Params) string { return p.WANDataTransport }),
	wireText("MercuryProtocol", "", func(p *sstmsg.Params) string { return p.MercuryProtocol }),
	wireText("ControlTransport", "sockets", func(p *sstmsg.Params) string { return p.ControlTransport }),
	wireText("ControlModule", "select", func(p *sstmsg.Params) string { return p.ControlModule }),
	wireText("NetworkInterface", "", func(p *sstmsg.Params) string { return p.NetworkInterface }),
	wireText("ControlInterface", "", func(p *sstmsg.Params) string { return p.ControlInterface }),
	wireText("DataInterface", "", func(p *sstmsg.Params) string { return p.DataInterface }),
	wireWord("SpeculativePreloadMode", "Auto", func(p *sstmsg.Params) int32 { return p.SpeculativePreloadMode }, "Off", "On", "Auto"),
	wireInt("SpecAutoNodeThreshold", "1", func(p *sstmsg.Params) int32 { return p.SpecAutoNodeThreshold }),
	wireWord("AlwaysProvideLatestTimestep", "false", func(p *sstmsg.Params) int32 { return p.AlwaysProvideLatestTimestep }, "false", "true"),
	wireInt("OpenTimeoutSecs", "60", func(p *sstmsg.Params) int32 { return p.OpenTimeoutSecs }),
	wireInt("StatsLevel", "0", func(p *sstmsg.Params) int32 { return p.StatsLevel }),
	wireWord("CompressionMethod", "None", func(p *sstmsg.Params) int64 { return p.CompressionMethod }, "None", "ZFP"),
	wireWord("UseOneTimeAttributes", "false", func(p *sstmsg.Params) int32 { return p.UseOneTimeAttributes }, "false", "true"),
	wireWord("IsRowMajor", "true", func(p *sstmsg.Params) int32 { return p.IsRowMajor }, "false", "true"),
	wireWord("ReaderShortCircuitReads", "false", func(p *sstmsg.Params) int32 { return p.ReaderShortCircuitReads }, "false", "true"),
	wireText("RemoteGroup", "", func(p *sstmsg.Params) string { return p.RemoteGroup }),
	wireInt("verbose", "1", func(p *sstmsg.Params) int32 { return p.Verbose }),
}

func wireValues(p *sstmsg.Params) []EffectiveParam {
	list := make([]EffectiveParam, 0, len(wireTable))
	for _, d := range wireTable {
		v := d.value(p)
		list = append(list, EffectiveParam{Name: d.name, Value: v, Set: v != d.def})
	}
	return list
}

package sst

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/suggest"
)

// Side is a set of the two sides of a stream.
type Side uint8

// The sides.
const (
	WriterSide Side = 1 << iota
	ReaderSide
)

const bothSides = WriterSide | ReaderSide

// String names the side.
func (s Side) String() string {
	return [...]string{"neither side", "writer", "reader", "writer and reader"}[s&bothSides]
}

// paramDef describes one engine parameter.
type paramDef struct {
	name  string
	sides Side
	def   string // default, as text
	help  string
	words []string // the values that there are, if those are words
	get   func(*Params) string
	set   func(*Params, string) error
}

// isSet reports whether the parameter differs from its default.
func (d *paramDef) isSet(p *Params) bool { return d.get != nil && d.get(p) != "" }

// value returns the value as text, "" for one that is not set.
func (d *paramDef) value(p *Params) string {
	if d.get == nil {
		return ""
	}
	return d.get(p)
}

// intParam describes a number in [lo, hi].
func intParam(name string, s Side, def int, lo, hi int, field func(*Params) *int, help string) paramDef {
	return paramDef{
		name: name, sides: s, def: strconv.Itoa(def), help: help,
		get: func(p *Params) string {
			if v := *field(p); v != 0 {
				return strconv.Itoa(v)
			}
			return ""
		},
		set: func(p *Params, text string) (err error) {
			*field(p), err = parseInt(name, text, lo, hi)
			return err
		},
	}
}

// boolParam describes a switch that is off by default.
func boolParam(name string, s Side, field func(*Params) *bool, help string) paramDef {
	return paramDef{
		name: name, sides: s, def: "false", help: help,
		get: func(p *Params) string {
			if *field(p) {
				return "true"
			}
			return ""
		},
		set: func(p *Params, text string) (err error) {
			*field(p), err = parseBool(name, text)
			return err
		},
	}
}

// wordParam describes one of several words; the first is the default.
func wordParam(name string, s Side, field func(*Params) *string, help string, words ...string) paramDef {
	return paramDef{
		name: name, sides: s, def: words[0], help: help, words: words,
		get: func(p *Params) string { return *field(p) },
		set: func(p *Params, text string) error {
			i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
			if i < 0 {
				return fmt.Errorf("%w: %s=%q: must be %s (%s)", ErrParam, name, text, eitherOf(words), help)
			}
			*field(p) = words[i]
			return nil
		},
	}
}

// eitherOf lists words that somebody can choose from.
func eitherOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// textParam describes free text.
func textParam(name string, s Side, field func(*Params) *string, help string) paramDef {
	return paramDef{
		name: name, sides: s, help: help,
		get: func(p *Params) string { return *field(p) },
		set: func(p *Params, text string) error { *field(p) = text; return nil },
	}
}

// fixedParam describes a parameter of ADIOS2 that has one accepted value here.
func fixedParam(name string, s Side, why string, accepted ...string) paramDef {
	return paramDef{
		name: name, sides: s, def: accepted[0], help: why, words: accepted,
		set: func(p *Params, text string) error {
			if slices.ContainsFunc(accepted, func(a string) bool { return strings.EqualFold(a, text) }) {
				return nil
			}
			return fmt.Errorf("%w: %s=%q: %s", ErrParam, name, text, why)
		},
	}
}

const maxInt32 = 1<<31 - 1

// paramTable lists every engine parameter of SST, ADIOS2's and ours.
var paramTable = []paramDef{
	{
		name: "RendezvousReaderCount", sides: WriterSide, def: "1", help: "readers that the writer waits for before Create returns",
		get: func(p *Params) string {
			if p.RendezvousReaderCount == nil {
				return ""
			}
			return strconv.Itoa(*p.RendezvousReaderCount)
		},
		set: func(p *Params, text string) error {
			n, err := parseInt("RendezvousReaderCount", text, 0, maxInt32)
			if err == nil {
				p.RendezvousReaderCount = &n
			}
			return err
		},
	},
	wordParam("RegistrationMethod", bothSides, func(p *Params) *string { return &p.RegistrationMethod }, "how readers find the writer", "File", "Screen"),
	intParam("QueueLimit", WriterSide, 0, 0, maxInt32, func(p *Params) *int { return &p.QueueLimit }, "steps that may wait for readers, 0 for no limit"),
	wordParam("QueueFullPolicy", WriterSide, func(p *Params) *string { return &p.QueueFullPolicy }, "what a full queue does with a new step", "Block", "Discard"),
	{
		name: "QueueLimitBytes", sides: WriterSide, def: "0", help: "bytes of steps that may wait for readers, 0 for no limit; 512MiB, say (Weft's own)",
		get: func(p *Params) string {
			if p.QueueLimitBytes == 0 {
				return ""
			}
			return formatBytes(p.QueueLimitBytes)
		},
		set: func(p *Params, text string) (err error) {
			p.QueueLimitBytes, err = parseBytes("QueueLimitBytes", text)
			return err
		},
	},
	wordParam("BlockAt", WriterSide, func(p *Params) *string { return &p.BlockAt }, "where a full queue stops the writer (Weft's own)", "EndStep", "BeginStep"),
	intParam("ReserveQueueLimit", WriterSide, 0, 0, maxInt32, func(p *Params) *int { return &p.ReserveQueueLimit }, "newest steps kept for readers that come later"),
	boolParam("FirstTimestepPrecious", WriterSide, func(p *Params) *bool { return &p.FirstTimestepPrecious }, "keep the first step for readers that come later"),
	wordParam("StepDistributionMode", WriterSide, func(p *Params) *string { return &p.StepDistributionMode }, "which reader cohort gets a step", "AllToAll", "RoundRobin", "OnDemand"),
	intParam("LagNotice", WriterSide, 0, 0, maxInt32, func(p *Params) *int { return &p.LagNotice }, "steps that a reader may be behind before the writer's program is told, 0 for any (Weft's own)"),
	intParam("LagLimit", WriterSide, 0, 0, maxInt32, func(p *Params) *int { return &p.LagLimit }, "steps that a reader may be behind before it is detached, 0 for any (Weft's own)"),
	{
		name: "QueueWarnBytes", sides: WriterSide, def: "Auto", help: "bytes of waiting steps at which the log warns; Auto: a quarter of the memory (Weft's own)",
		get: func(p *Params) string {
			if p.QueueWarnBytes == nil {
				return ""
			}
			return formatBytes(*p.QueueWarnBytes)
		},
		set: func(p *Params, text string) error {
			if strings.EqualFold(text, "Auto") {
				p.QueueWarnBytes = nil
				return nil
			}
			n, err := parseBytes("QueueWarnBytes", text)
			if err == nil {
				p.QueueWarnBytes = &n
			}
			return err
		},
	},
	intParam("OpenTimeoutSecs", ReaderSide, 60, 1, maxInt32, func(p *Params) *int { return &p.OpenTimeoutSecs }, "seconds that Open may take"),
	wordParam("SpeculativePreloadMode", bothSides, func(p *Params) *string { return &p.SpeculativePreloadMode }, "push whole steps to readers", "Auto", "On", "Off"),
	intParam("SpecAutoNodeThreshold", ReaderSide, 1, 0, maxInt32, func(p *Params) *int { return &p.SpecAutoNodeThreshold }, "largest reader cohort that Auto preloads to"),
	boolParam("AlwaysProvideLatestTimestep", ReaderSide, func(p *Params) *bool { return &p.AlwaysProvideLatestTimestep }, "skip to the newest step"),
	wordParam("DataTransport", bothSides, func(p *Params) *string { return &p.DataTransport }, "data plane to use and no other: native or shm is shared memory of this node, WAN or evpath are sockets; Auto chooses for each reader", "Auto", "WAN", "evpath", "native", "shm"),
	textParam("NetworkInterface", bothSides, func(p *Params) *string { return &p.NetworkInterface }, "interface whose address is published"),
	textParam("ControlInterface", bothSides, func(p *Params) *string { return &p.ControlInterface }, "as NetworkInterface, goes before it"),
	textParam("DataInterface", bothSides, func(p *Params) *string { return &p.DataInterface }, "interface whose address peers are told for data"),
	intParam("StatsLevel", WriterSide, 0, 0, 1, func(p *Params) *int { return &p.StatsLevel }, "1 records minimum and maximum of each block"),
	wordParam("ADIOS2Release", WriterSide, func(p *Params) *string { return &p.ADIOS2Release }, "field set for readers whose release the protocol does not show (Weft's own)", "Auto", "2.10", "2.12", "main"),
	fixedParam("MarshalMethod", bothSides, "BP5 is the only marshalling that Weft has", "BP5"),
	fixedParam("CPCommPattern", WriterSide, "the Peer pattern does not work in ADIOS2 with several readers", "Min"),
	fixedParam("WANDataTransport", bothSides, "the only wide-area transport is sockets", "sockets"),
	fixedParam("ControlTransport", bothSides, "the only control transport is sockets", "sockets", "tcp"),
	fixedParam("ControlModule", bothSides, "it chooses a polling method inside ADIOS2 and means nothing here", "select", "epoll"),
	fixedParam("CompressionMethod", WriterSide, "SST never had another one", "None"),
	fixedParam("IsRowMajor", bothSides, "use WriterConfig.ColumnMajor", "1", "true"),
	fixedParam("ReaderShortCircuitReads", ReaderSide, "it is a switch of ADIOS2's tests", "0", "false"),
	fixedParam("UseOneTimeAttributes", WriterSide, "attributes are always sent in a way that every reader keeps", "0", "1", "true", "false"),
	fixedParam("RemoteGroup", bothSides, "tunnel groups are not supported", ""),
	fixedParam("MercuryProtocol", bothSides, "there is no Mercury plane", ""),
	fixedParam("verbose", bothSides, "set a logger instead", "0", "1", "2", "3", "4", "5"),
}

// ParseParams makes Params from names and values as text. Names are exact, as
// in ADIOS2. An unknown name is an error that suggests the nearest one.
func ParseParams(m map[string]string) (Params, error) {
	var p Params
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := p.Set(name, m[name]); err != nil {
			return Params{}, err
		}
	}
	return p, nil
}

// Set sets one parameter by name from text. The error wraps [ErrParam].
func (p *Params) Set(name, value string) error {
	names := make([]string, 0, len(paramTable))
	for i := range paramTable {
		d := &paramTable[i]
		if d.name == name {
			return d.set(p, strings.TrimSpace(value))
		}
		names = append(names, d.name)
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Errorf("%w: unknown parameter %q; did you mean %s?", ErrParam, name, near)
	}
	return fmt.Errorf("%w: unknown parameter %q; known are %s", ErrParam, name, strings.Join(names, ", "))
}

// ParamInfo describes one engine parameter, for tools and help texts.
type ParamInfo struct {
	Name    string   `json:"name"`
	Sides   string   `json:"sides"` // "writer", "reader" or "writer and reader"
	Default string   `json:"default"`
	Values  []string `json:"values,omitempty"` // that it can have, if those are words
	Help    string   `json:"help"`
}

// ParamList lists every engine parameter that is known.
func ParamList() []ParamInfo {
	list := make([]ParamInfo, 0, len(paramTable))
	for _, d := range paramTable {
		list = append(list, ParamInfo{Name: d.name, Sides: d.sides.String(), Default: d.def, Values: slices.Clone(d.words), Help: d.help})
	}
	return list
}

func parseInt(name, text string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("%w: %s=%q: must be a number from %d to %d", ErrParam, name, text, lo, hi)
	}
	return n, nil
}

func parseBool(name, text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%w: %s=%q: must be true or false", ErrParam, name, text)
}

// units of bytes, the largest first.
var units = []struct {
	name  string
	shift uint
}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}

// parseBytes reads a number of bytes, as such or with a unit: 64MiB.
func parseBytes(name, text string) (uint64, error) {
	number, shift := text, uint(0)
	for _, u := range units {
		if rest, ok := cutSuffixFold(text, u.name); ok {
			number, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%w: %s=%q: must be a number of bytes, as such or in KiB, MiB, GiB, TiB", ErrParam, name, text)
	}
	return n << shift, nil
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}

// formatBytes is what parseBytes reads, in the largest unit that is exact.
func formatBytes(n uint64) string {
	for _, u := range units {
		if u.shift > 0 && n != 0 && n%(1<<u.shift) == 0 {
			return strconv.FormatUint(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10)
}

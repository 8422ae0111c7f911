package sst

import (
	"reflect"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// adios2Defaults is what ADIOS2 writers without parameters tell (2.10.2 and main),
// but for the data plane.
var adios2Defaults = sstmsg.Params{
	MarshalMethod: 2, Verbose: 1, ControlTransport: "sockets", OpenTimeoutSecs: 60, RendezvousReaderCount: 1, IsRowMajor: 1,
	SpeculativePreloadMode: 2, SpecAutoNodeThreshold: 1, ControlModule: "select",
}

func TestWireParams(t *testing.T) {
	for _, v := range wireValues(&adios2Defaults) {
		if v.Set {
			t.Errorf("%s=%s is not ADIOS2's default", v.Name, v.Value)
		}
	}
	p := adios2Defaults
	p.QueueLimit, p.QueueFullPolicy, p.CPCommPattern, p.StepDistributionMode, p.DataTransport = 3, 1, 1, 99, "ucx"
	want := map[string]string{"QueueLimit": "3", "QueueFullPolicy": "Discard", "CPCommPattern": "Peer", "StepDistributionMode": "99", "DataTransport": "ucx"}
	for _, v := range wireValues(&p) {
		if given, ok := want[v.Name]; ok != v.Set || ok && given != v.Value {
			t.Errorf("%+v, want %q", v, given)
		}
		delete(want, v.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// Every field of the protocol is in the table, under its name there.
func TestWireParamsAreWhole(t *testing.T) {
	typ := reflect.TypeFor[sstmsg.Params]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if name == "Verbose" {
			name = "verbose" // as ADIOS2 spells it
		}
		if !slices.ContainsFunc(wireTable, func(d wireParam) bool { return d.name == name }) {
			t.Errorf("%s is missing", name)
		}
	}
	if len(wireTable) != typ.NumField() {
		t.Errorf("%d entries for %d fields", len(wireTable), typ.NumField())
	}
}

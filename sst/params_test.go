package sst_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/sst"
)

// TestParamList sets every known parameter to its default and to nonsense.
func TestParamList(t *testing.T) {
	free := map[string]bool{"NetworkInterface": true, "ControlInterface": true, "DataInterface": true}
	for _, p := range sst.ParamList() {
		if p.Name == "" || p.Help == "" || p.Sides == "" {
			t.Errorf("%+v is not described", p)
		}
		if _, err := sst.ParseParams(map[string]string{p.Name: p.Default}); err != nil {
			t.Errorf("%s at its default %q: %v", p.Name, p.Default, err)
		}
		_, err := sst.ParseParams(map[string]string{p.Name: "nonsense"})
		switch {
		case free[p.Name]:
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		case !errors.Is(err, sst.ErrParam):
			t.Errorf("%s=nonsense: %v", p.Name, err)
		case !strings.Contains(err.Error(), p.Name) || !strings.Contains(err.Error(), "nonsense"):
			t.Errorf("%s: the error does not say what is wrong: %v", p.Name, err)
		}
	}
}

// TestParamsOfADIOS2 are settings that programs have in their XML files.
func TestParamsOfADIOS2(t *testing.T) {
	for _, c := range []struct {
		name, value string
		good        bool
	}{
		{"MarshalMethod", "bp5", true},
		{"MarshalMethod", "FFS", false},
		{"RegistrationMethod", "File", true},
		{"RegistrationMethod", "screen", true},
		{"RegistrationMethod", "Cloud", false},
		{"StepDistributionMode", "AllToAll", true},
		{"StepDistributionMode", "ROUNDROBIN", true},
		{"StepDistributionMode", "ondemand", true},
		{"StepDistributionMode", "Random", false},
		{"BlockAt", "beginstep", true},
		{"BlockAt", "begin", false},
		{"QueueLimitBytes", "1048576", true},
		{"QueueLimitBytes", "64 MiB", true},
		{"QueueLimitBytes", "1gib", true},
		{"QueueLimitBytes", "7B", true},
		{"QueueLimitBytes", "1.5GiB", false},
		{"QueueLimitBytes", "64MB", false},
		{"QueueLimitBytes", "-1", false},
		{"QueueLimitBytes", "", false},
		{"QueueLimitBytes", "MiB", false},
		{"QueueLimitBytes", "8388608TiB", false},
		{"QueueLimitBytes", "9223372036854775808", false},
		{"QueueWarnBytes", "auto", true},
		{"QueueWarnBytes", "0", true},
		{"QueueWarnBytes", "2GiB", true},
		{"QueueWarnBytes", "some", false},
		{"LagNotice", "5", true},
		{"LagLimit", "-1", false},
		{"CPCommPattern", "Min", true},
		{"CPCommPattern", "Peer", false},
		{"ControlTransport", "sockets", true},
		{"ControlTransport", "enet", false},
		{"DataTransport", "auto", true},
		{"DataTransport", "wan", true},
		{"DataTransport", "evpath", true},
		{"DataTransport", "rdma", false},
		{"DataTransport", "ucx", false},
		{"QueueFullPolicy", "block", true},
		{"QueueFullPolicy", "Discard", true},
		{"QueueFullPolicy", "drop", false},
		{"QueueLimit", "-1", false},
		{"QueueLimit", "2147483648", false},
		{"QueueLimit", "1.5", false},
		{"RendezvousReaderCount", "0", true},
		{"RendezvousReaderCount", "-1", false},
		{"ReserveQueueLimit", "0", true},
		{"ReserveQueueLimit", "3", true},
		{"FirstTimestepPrecious", "Yes", true},
		{"FirstTimestepPrecious", "first", false},
		{"OpenTimeoutSecs", "0", false},
		{"OpenTimeoutSecs", " 5 ", true},
		{"AlwaysProvideLatestTimestep", "yes", true},
		{"AlwaysProvideLatestTimestep", "maybe", false},
		{"SpeculativePreloadMode", "ON", true},
		{"StatsLevel", "1", true},
		{"StatsLevel", "2", false},
		{"verbose", "5", true},
		{"querylimit", "1", false},
	} {
		_, err := sst.ParseParams(map[string]string{c.name: c.value})
		if (err == nil) != c.good {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
		if err != nil && !errors.Is(err, sst.ErrParam) {
			t.Errorf("%s=%s: %v is no ErrParam", c.name, c.value, err)
		}
	}
}

// TestF14ParamTypo is field report F14: a mistyped limit must not vanish.
func TestF14ParamTypo(t *testing.T) {
	for typo, want := range map[string]string{
		"QueueLimits":             "QueueLimit",
		"queuelimit":              "QueueLimit",
		"RendevousReaderCount":    "RendezvousReaderCount",
		"OpenTimeoutSec":          "OpenTimeoutSecs",
		"completely different":    "known are",
		"SpeculativePreloadModes": "SpeculativePreloadMode",
	} {
		_, err := sst.ParseParams(map[string]string{typo: "2"})
		if !errors.Is(err, sst.ErrParam) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not lead to %s", typo, err, want)
		}
	}
	text, err := sst.ParseParams(map[string]string{"QueueLimit": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sst.Params{QueueLimit: 2}, text); d != "" {
		t.Errorf("'2' and 2 differ:\n%s", d)
	}
}

func TestParamOnTheWrongSide(t *testing.T) {
	name := streamName(t)
	for i, p := range []sst.Params{
		{OpenTimeoutSecs: 5}, {AlwaysProvideLatestTimestep: true}, {SpecAutoNodeThreshold: 2},
		{QueueLimit: -1}, {QueueFullPolicy: "Drop"}, {StatsLevel: 7}, {RendezvousReaderCount: count(-1)}, {DataTransport: "rdma"},
	} {
		within(t, 5*time.Second, "Create", func() {
			_, err := sst.Create(t.Context(), name, sst.WriterConfig{Params: p})
			wants(t, fmt.Sprint("writer ", i), err, sst.ErrParam)
		})
	}
	for i, p := range []sst.Params{
		{QueueLimit: 2}, {QueueFullPolicy: "Discard"}, {StatsLevel: 1}, {RendezvousReaderCount: count(1)}, {ADIOS2Release: "2.10"},
		{OpenTimeoutSecs: -1}, {SpeculativePreloadMode: "Perhaps"},
	} {
		within(t, 5*time.Second, "Open", func() {
			_, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: p})
			wants(t, fmt.Sprint("reader ", i), err, sst.ErrParam)
		})
	}
	_, err := sst.Create(t.Context(), name, sst.WriterConfig{Params: sst.Params{NetworkInterface: "eth7"}, Session: quickSession(t)})
	wants(t, "another interface than the session's", err, sst.ErrParam)
	_, err = sst.Create(t.Context(), name, sst.WriterConfig{Params: sst.Params{NetworkInterface: "no-such-interface"}})
	if err == nil {
		t.Error("an interface that is not there is accepted")
	}
	_, err = sst.Create(t.Context(), name, sst.WriterConfig{Ranks: sst.NoRanks - 1})
	if err == nil {
		t.Error("-1 ranks are accepted")
	}
	empty(t, name)
}

// TestForcedPlaneIsShown: a plane that somebody has chosen is no default, whichever it is: it is
// shown, and the ranks of a cohort must agree on it.
func TestForcedPlaneIsShown(t *testing.T) {
	for _, c := range []struct {
		given string
		want  sst.EffectiveParam
		text  string
	}{
		{"", sst.EffectiveParam{Name: "DataTransport", Value: "Auto"}, ""},
		{"auto", sst.EffectiveParam{Name: "DataTransport", Value: "Auto"}, ""},
		{"wan", sst.EffectiveParam{Name: "DataTransport", Value: "WAN", Set: true}, "DataTransport=WAN"},
		{"native", sst.EffectiveParam{Name: "DataTransport", Value: "native", Set: true}, "DataTransport=native"},
	} {
		p := sst.Params{DataTransport: c.given}
		list, err := p.Effective(sst.WriterSide)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(e sst.EffectiveParam) bool { return e.Name == c.want.Name })
		if i < 0 || list[i] != c.want {
			t.Errorf("%q: %+v, want %+v", c.given, list, c.want)
		}
		if p, err = sst.ParseParams(map[string]string{"DataTransport": list[i].Value}); err != nil || p.String() != c.text {
			t.Errorf("%q is %q, %v, want %q", c.given, p, err, c.text)
		}
	}
}

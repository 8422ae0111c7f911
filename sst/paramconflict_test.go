package sst

import (
	"strings"
	"testing"
)

// TestParamConflicts: what is said in vain is told once, with both values; what only
// just works is not.
func TestParamConflicts(t *testing.T) {
	bytes := func(n uint64) *uint64 { return &n }
	for name, c := range map[string]struct {
		params Params
		want   string // of the one warning, parts with commas between; none means none
	}{
		"defaults":                 {Params{}, ""},
		"lag below the queue":      {Params{QueueLimit: 4, LagLimit: 3}, ""},
		"lag at the queue":         {Params{QueueLimit: 4, LagLimit: 4}, "LagLimit=4,QueueLimit=4,Block"},
		"lag above it":             {Params{QueueLimit: 2, LagLimit: 9}, "LagLimit=9,QueueLimit=2,more than 2 steps"},
		"lag, no limit":            {Params{LagLimit: 9}, ""},
		"lag, Discard":             {Params{QueueLimit: 2, LagLimit: 9, QueueFullPolicy: "Discard"}, ""},
		"lag, RoundRobin":          {Params{QueueLimit: 2, LagLimit: 9, StepDistributionMode: "RoundRobin"}, ""},
		"notice at the queue":      {Params{QueueLimit: 2, LagNotice: 2}, "LagNotice=2,QueueLimit=2"},
		"notice below the limit":   {Params{LagNotice: 2, LagLimit: 3}, ""},
		"notice at the limit":      {Params{LagNotice: 3, LagLimit: 3}, "LagNotice=3,LagLimit=3"},
		"reserve at the queue":     {Params{QueueLimit: 2, ReserveQueueLimit: 2}, ""},
		"reserve above it":         {Params{QueueLimit: 2, ReserveQueueLimit: 5}, "ReserveQueueLimit=5,QueueLimit"},
		"reserve, no limit":        {Params{ReserveQueueLimit: 5}, ""},
		"Discard without a limit":  {Params{QueueFullPolicy: "Discard"}, "Discard,QueueLimit=0"},
		"Discard, limit in bytes":  {Params{QueueFullPolicy: "Discard", QueueLimitBytes: 1}, ""},
		"BlockAt with Discard":     {Params{QueueFullPolicy: "Discard", QueueLimit: 1, BlockAt: "BeginStep"}, "BlockAt=BeginStep,Discard"},
		"BlockAt with Block":       {Params{QueueLimit: 1, BlockAt: "BeginStep"}, ""},
		"warning above the limit":  {Params{QueueLimitBytes: 1 << 20, QueueWarnBytes: bytes(1 << 21)}, "QueueWarnBytes=2MiB,QueueLimitBytes=1MiB"},
		"warning below the limit":  {Params{QueueLimitBytes: 1 << 20, QueueWarnBytes: bytes(1 << 19)}, ""},
		"warning that is off":      {Params{QueueLimitBytes: 1 << 20, QueueWarnBytes: bytes(0)}, ""},
		"spelling of other people": {Params{QueueFullPolicy: "discard", QueueLimit: 2, LagLimit: 9}, ""},
	} {
		p, err := c.params.resolve(WriterSide)
		if err != nil {
			t.Fatal(err)
		}
		got := p.conflicts()
		if c.want == "" {
			if got != nil {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %q, want one", name, got)
			continue
		}
		for part := range strings.SplitSeq(c.want, ",") {
			if !strings.Contains(got[0], part) {
				t.Errorf("%s: %q does not name %s", name, got[0], part)
			}
		}
	}
}

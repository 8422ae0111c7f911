package interop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	tests := []struct {
		name      string
		got, want []string
	}{
		{"nothing", Stream{}.args(), []string{"zoo"}},
		{"stream", Stream{
			Name: "a", Engine: "BP5", Params: map[string]string{"B": "2", "A": "1"}, Vars: []string{"x/", "y/"},
			NoAttributes: true, StepWait: true, StepDelay: 50 * time.Millisecond,
		}.args(), []string{
			"a", "--engine", "BP5", "--param", "A=1", "--param", "B=2", "--vars", "x/,y/",
			"--no-attributes", "--step-wait", "--step-delay", "0.05",
		}},
		{"writer", WriterOptions{Steps: 3, Hold: true, Operator: "bzip2"}.args(),
			[]string{"zoo", "--steps", "3", "--hold", "--operator", "bzip2"}},
		{"reader", ReaderOptions{}.args(), []string{"zoo", "--writer-ranks", "1"}},
		{"reader with all", ReaderOptions{
			WriterRanks: 2, WeftWriter: true, Steps: 3, StopAfter: 1, Late: true, Gaps: true, Quiet: true, Timeout: time.Second,
		}.args(), []string{
			"zoo", "--writer-ranks", "2", "--writer", "weft", "--steps", "3", "--stop-after", "1",
			"--late", "--gaps", "--quiet", "--timeout", "1",
		}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestComplaints(t *testing.T) {
	got := complaints("READY\n{\"step\":0}\nMISMATCH x\n")
	if want := "READY\nMISMATCH x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

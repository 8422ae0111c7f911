package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/sst"
)

// adios2Contact is a contact file of ADIOS2 2.10.2, of a writer that is not there.
const adios2Contact = "#ADIOS2-SST v0\n0x1234:AAIBAJTJ8o0BwQAAATkCmAEAAH9JOEt3AwAAAAMAbG8AAAAA"

func adios2Writer(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(name+contactSuffix, []byte(adios2Contact), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Who asks an ADIOS2 writer is told why there is no answer, and what to do.
func TestAskADIOS2(t *testing.T) {
	name := adios2Writer(t)
	r := run(t.Context(), "stat", name)
	if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "no statistics; `weft ls` attaches as a reader (release 2.10 or earlier") {
		t.Errorf("%+v", r)
	}
	r = run(t.Context(), "params", "-P", "OpenTimeoutSecs=7", name)
	if r.code != exitFailed || !strings.Contains(r.stderr, "--attach") || strings.Contains(r.stdout, "writer:") ||
		!strings.Contains(r.stdout, "reader: this command\n") || !strings.Contains(r.stdout, "OpenTimeoutSecs") {
		t.Errorf("%+v", r)
	}
	r = run(t.Context(), "params", "--json", name)
	var o struct {
		Writer *struct{}
		Reader []sst.EffectiveParam
	}
	if err := json.Unmarshal([]byte(r.stdout), &o); err != nil || r.code != exitFailed || o.Writer != nil || len(o.Reader) == 0 {
		t.Errorf("%v: %+v", err, r)
	}
	r = run(t.Context(), "params", "--attach", "--timeout", "1s", name)
	if r.code != exitFailed || !strings.Contains(r.stderr, "writer that is gone") {
		t.Errorf("%+v", r)
	}
}

// Both sides have every parameter that is theirs, and what was given is marked.
func TestParamsCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	aWriter(t, name)
	r := run(t.Context(), "params", "--json", "-P", "SpeculativePreloadMode=off", "--param", "OpenTimeoutSecs=9", name)
	var o struct {
		Name   string
		Writer struct {
			Software, Addr string
			Params         []sst.EffectiveParam
		}
		Reader []sst.EffectiveParam
	}
	lines := json.NewDecoder(strings.NewReader(r.stdout))
	lines.DisallowUnknownFields()
	if err := lines.Decode(&o); err != nil || r.code != exitOK || r.stderr != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	if o.Name != name || o.Writer.Software != "Weft" || !strings.Contains(o.Writer.Addr, ":") {
		t.Errorf("%+v", o)
	}
	given := func(list []sst.EffectiveParam) map[string]string {
		m := map[string]string{}
		for _, p := range list {
			if p.Set {
				m[p.Name] = p.Value
			}
		}
		return m
	}
	if d := cmp.Diff(map[string]string{"RendezvousReaderCount": "0", "QueueLimit": "4"}, given(o.Writer.Params)); d != "" {
		t.Errorf("writer (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"SpeculativePreloadMode": "Off", "OpenTimeoutSecs": "9"}, given(o.Reader)); d != "" {
		t.Errorf("reader (-want +got):\n%s", d)
	}
	for _, p := range sst.ParamList() {
		there := func(list []sst.EffectiveParam) bool {
			for _, e := range list {
				if e.Name == p.Name {
					return true
				}
			}
			return false
		}
		if strings.Contains(p.Sides, "writer") != there(o.Writer.Params) || strings.Contains(p.Sides, "reader") != there(o.Reader) {
			t.Errorf("%s is a parameter of %s, but not shown there, or elsewhere too", p.Name, p.Sides)
		}
	}
	text := run(t.Context(), "params", "-P", "OpenTimeoutSecs=9", name)
	for _, want := range []string{"writer: Weft at ", "  QueueLimit ", "reader: this command", "  NetworkInterface "} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("no %q in\n%s", want, text.stdout)
		}
	}
}

// Every engine parameter of a side can be given, for the reader and for the target.
func TestEveryParamCanBeGiven(t *testing.T) {
	for _, p := range sst.ParamList() {
		arg := p.Name + "=" + p.Default
		if strings.Contains(p.Sides, "reader") {
			if _, err := parseReaderParams("--param", []string{arg}); err != nil {
				t.Errorf("reader: %s: %v", arg, err)
			}
		}
		if strings.Contains(p.Sides, "writer") {
			q, err := targetParams([]string{arg})
			if err == nil {
				_, err = q.Effective(sst.WriterSide)
			}
			if err != nil {
				t.Errorf("target: %s: %v", arg, err)
			}
		}
	}
}

// A queue without a limit can be asked for; 4 is only the default.
func TestPipeQueueLimit(t *testing.T) {
	for arg, want := range map[string]int{"QueueLimit=0": 0, "QueueLimit=7": 7, "QueueLimitBytes=1MiB": pipeQueue} {
		p, err := targetParams([]string{arg})
		if err != nil || p.QueueLimit != want {
			t.Errorf("%s: a limit of %d, %v", arg, p.QueueLimit, err)
		}
	}
}

// What ADIOS2 reads from the environment is refused by name if it makes no sense.
func TestEnvironmentOfADIOS2(t *testing.T) {
	t.Setenv("ADIOS2_PORT_RANGE", "many")
	name := filepath.Join(t.TempDir(), "s")
	r := run(t.Context(), "pipe", bpfixture.Extract(t, "main-nostats"), name)
	if r.code != exitUsage || !strings.Contains(r.stderr, "ADIOS2_PORT_RANGE") {
		t.Errorf("%+v", r)
	}
}

package interop

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// Two network namespaces are two hosts on one machine: with addresses of their
// own, loopbacks of their own, and two networks between them.

// host is a network namespace.
type host struct{ name string }

// Addresses of the hosts: one link carries the data, the other leads nowhere
// useful for who chose the wrong interface.
const (
	wireA, wireB = "10.213.1.1", "10.213.1.2"
	wrongA       = "10.213.2.1"
)

// twoHosts makes two namespaces with a veth pair between them, "wire" in both, and
// an interface "wrong" in the first that nobody else can reach.
func twoHosts(t *testing.T) (a, b host) {
	t.Helper()
	testutil.Require(t, testutil.Superuser(), testutil.Program("ip"), netnsWorks())
	tag := strings.ToLower(rand.Text()[:6])
	a, b = host{"weft-a-" + tag}, host{"weft-b-" + tag}
	for _, h := range []host{a, b} {
		ip(t, "netns", "add", h.name)
		t.Cleanup(func() { ip(t, "netns", "del", h.name) })
	}
	ip(t, "-n", a.name, "link", "add", "name", "wire", "type", "veth", "peer", "name", "wire", "netns", b.name)
	ip(t, "-n", a.name, "link", "add", "name", "wrong", "type", "veth", "peer", "name", "nowhere")
	ip(t, "-n", a.name, "addr", "add", wireA+"/24", "dev", "wire")
	ip(t, "-n", b.name, "addr", "add", wireB+"/24", "dev", "wire")
	ip(t, "-n", a.name, "addr", "add", wrongA+"/24", "dev", "wrong")
	for _, h := range []host{a, b} {
		ip(t, "-n", h.name, "link", "set", "lo", "up")
		ip(t, "-n", h.name, "link", "set", "wire", "up")
	}
	ip(t, "-n", a.name, "link", "set", "wrong", "up")
	ip(t, "-n", a.name, "link", "set", "nowhere", "up")
	return a, b
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// netnsWorks says whether the kernel lets us make namespaces with links.
func netnsWorks() testutil.Capability {
	return testutil.Capability{Name: "network namespaces with veth links", Fixed: true, Probe: func() error {
		name := "weft-probe-" + strings.ToLower(rand.Text()[:6])
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns add: %w: %s", err, out)
		}
		var errs []error
		for _, args := range [][]string{
			{"-n", name, "link", "add", "name", "one", "type", "veth", "peer", "name", "two"},
			{"netns", "del", name},
		} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out))
			}
		}
		return errors.Join(errs...)
	}}
}

// in lets a stream's side run on the host.
func (h host) in(s Stream) Stream {
	s.Prefix = []string{"ip", "netns", "exec", h.name}
	return s
}

// TestTwoHosts: writer and reader on hosts of their own. NetworkInterface says
// which address the writer publishes; ControlInterface goes before it.
func TestTwoHosts(t *testing.T) {
	a, b := twoHosts(t)
	for _, params := range []map[string]string{
		{"NetworkInterface": "wire"}, {"NetworkInterface": "wrong", "ControlInterface": "wire", "DataInterface": "wire"},
	} {
		for _, preload := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%v, preload %s", params, preload), func(t *testing.T) {
				dir := t.TempDir()
				w := WeftWriter(t, WriterOptions{Stream: a.in(Stream{Dir: dir, Ranks: 2, Vars: few, Params: params}), Steps: 5})
				o := ReaderOptions{
					Stream:      b.in(Stream{Dir: dir, Ranks: 2, Vars: few, Params: map[string]string{"SpeculativePreloadMode": preload, "NetworkInterface": "wire"}}),
					WriterRanks: 2, WeftWriter: true, Steps: 5,
				}
				wantAll(t, WeftReader(t, o).StepNumbers(), 5)
				w.OK()
			})
		}
	}
}

// TestTwoHostsADIOS2: a real side on each of the hosts.
func TestTwoHostsADIOS2(t *testing.T) {
	a, b := twoHosts(t)
	env := []string{"ADIOS2_SERIAL_INTERFACE=wire", "ADIOS2_MPI_INTERFACE=wire"}
	t.Run("writer", func(t *testing.T) {
		dir := t.TempDir()
		w := ADIOS2Writer(t, WriterOptions{Stream: a.in(Stream{Dir: dir, Ranks: 2, Vars: few, Env: env}), Steps: 5})
		o := ReaderOptions{Stream: b.in(Stream{Dir: dir, Ranks: 2, Vars: few, Params: map[string]string{"NetworkInterface": "wire"}}), WriterRanks: 2, Steps: 5}
		wantAll(t, WeftReader(t, o).StepNumbers(), 5)
		w.OK()
	})
	t.Run("reader", func(t *testing.T) {
		dir := t.TempDir()
		w := WeftWriter(t, WriterOptions{Stream: a.in(Stream{Dir: dir, Ranks: 2, Vars: few, Params: map[string]string{"NetworkInterface": "wire"}}), Steps: 5})
		r := ADIOS2Reader(t, ReaderOptions{Stream: b.in(Stream{Dir: dir, Ranks: 2, Vars: few, Env: env}), WriterRanks: 2, WeftWriter: true, Steps: 5})
		wantAll(t, r.Steps(zoo.Check{Ranks: 2, From: zoo.Weft, Prefixes: few}), 5)
		w.OK()
	})
}

// TestTwoHostsWrongInterface: an interface that does not exist is an error that
// names it; one that the reader cannot reach lets the reader time out
// with the address in its error.
func TestTwoHostsWrongInterface(t *testing.T) {
	a, b := twoHosts(t)
	t.Run("not there", func(t *testing.T) {
		w := WeftWriter(t, WriterOptions{Stream: a.in(Stream{Dir: t.TempDir(), Params: map[string]string{"NetworkInterface": "wier"}})})
		e := w.End(0, soon)
		if e.Late || e.Code != exitFailed || !strings.Contains(e.Text, "wier") {
			t.Errorf("%+v, want an error that names wier", e)
		}
	})
	t.Run("not reachable", func(t *testing.T) {
		dir := t.TempDir()
		WeftWriter(t, WriterOptions{Stream: a.in(Stream{Dir: dir, Params: map[string]string{"NetworkInterface": "wrong"}})}).Expect("OPENING")
		r := WeftReader(t, ReaderOptions{Stream: b.in(Stream{Dir: dir, Params: map[string]string{"OpenTimeoutSecs": "2"}}), WeftWriter: true})
		e := r.End(0, 2*soon)
		if e.Late || !e.Failed("ErrTimeout", "ErrStale") || !strings.Contains(e.Text, wrongA) {
			t.Errorf("%+v, want an error that names %s", e, wrongA)
		}
	})
}

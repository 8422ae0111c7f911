package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/doctor"
	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/internal/host"
)

// The form that docs/cli.md promises, as a program would declare it.
type docDoctor struct {
	OK     *bool `json:"ok"`
	Checks []struct {
		Name   string `json:"name"`
		Needed bool   `json:"needed"`
		State  string `json:"state"`
		Found  string `json:"found"`
		Remedy string `json:"remedy"`
	} `json:"checks"`
	Host       host.Facts `json:"host"`
	Namespaces []struct {
		Name  string `json:"name"`
		Inode uint64 `json:"inode"`
		Init  *bool  `json:"init"`
	} `json:"namespaces"`
	Devices []struct {
		Name  string `json:"name"`
		Ports []struct {
			Number string `json:"number"`
			State  string `json:"state"`
		} `json:"ports"`
	} `json:"rdma_devices"`
	Libraries []struct {
		Name string `json:"name"`
		Path string `json:"path"`
	} `json:"libraries"`
	Hooks struct {
		PID     int    `json:"pid"`
		Error   string `json:"error"`
		Library string `json:"library"`
		Objects int    `json:"objects"`
		Hooks   []struct {
			Function string `json:"function"`
			Kind     string `json:"kind"`
			Object   string `json:"object"`
			Target   uint64 `json:"target"`
			Owner    string `json:"owner"`
			Symbol   string `json:"symbol"`
			Note     string `json:"note"`
		} `json:"hooks"`
		Unseen []struct {
			Object string `json:"object"`
			Why    string `json:"why"`
		} `json:"unseen"`
	} `json:"hooks"`
	Monitor struct {
		Serves   string   `json:"serves"`
		State    string   `json:"state"`
		Error    string   `json:"error"`
		Disabled bool     `json:"disabled"`
		Answers  []string `json:"answers"`
		Gaps     []struct {
			Memory string   `json:"memory"`
			Misses []string `json:"misses"`
		} `json:"gaps"`
		Choices []struct {
			Name  string `json:"name"`
			Works bool   `json:"works"`
			Error string `json:"error"`
		} `json:"choices"`
	} `json:"monitor"`
}

// sick is a report of a machine with everything in it.
func sick() doctor.Report {
	evil := "x\x1b[2J\ny"
	return doctor.Report{
		Checks: []doctor.Check{
			{Name: "memory_files", Needed: true, State: doctor.Missing, Found: evil, Remedy: evil},
			{Name: "epoll", Needed: true, State: doctor.Missing},
			{Name: "cma", State: doctor.Missing, Found: "EPERM"},
			{Name: "rdma", State: doctor.Works, Found: evil},
		},
		Namespaces: []doctor.Namespace{{Name: "user", Inode: 1, Init: new(bool)}},
		Devices:    []doctor.Device{{Name: "mlx5_0", Ports: []doctor.Port{{Number: "1", State: "4: ACTIVE"}}}},
		Libraries:  []doctor.Library{{Name: "ucx", Path: "/usr/lib/libucp.so.0.0.0"}},
		Hooks: doctor.HooksReport{PID: 1, Error: "none", Report: hooks.Report{
			Library: "/lib/libc.so.6", Objects: 3, Hooks: []hooks.Hook{{Function: "munmap", Kind: hooks.Patched, Object: "/lib/libc.so.6", Target: 1, Owner: "/x.so", Symbol: "y", Note: "z"}},
			Unseen: []hooks.Unseen{{Object: "/y.so", Why: "gone"}},
		}},
		Monitor: doctor.MonitorState{
			Serves: "none", State: "idle", Error: "none", Answers: []string{"private memory"},
			Gaps: []doctor.Gap{{Memory: "shared memory", Misses: []string{"ftruncate"}}}, Choices: []doctor.Choice{{Name: "none", Works: true, Error: "none"}},
		},
	}
}

// TestDoctorJSON: the form is the documented one, in both directions, and empty lists are lists.
func TestDoctorJSON(t *testing.T) {
	for _, r := range []doctor.Report{sick(), doctor.Examine(doctor.Config{})} {
		b, err := jsonLine(r)
		if err != nil {
			t.Fatal(err)
		}
		var doc docDoctor
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		again, err := jsonLine(doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(b), string(again)); diff != "" {
			t.Error(diff)
		}
		for _, list := range []string{"checks", "namespaces", "rdma_devices", "ports", "libraries", "hooks", "unseen", "answers", "gaps", "misses", "choices"} {
			if strings.Contains(string(b), `"`+list+`":null`) {
				t.Errorf("%s is no list: %s", list, b)
			}
		}
	}
}

func TestDoctorText(t *testing.T) {
	var b bytes.Buffer
	out := newOutput(&b)
	r := sick()
	writeDoctor(out, &r)
	if err := out.flush(); err != nil {
		t.Fatal(err)
	}
	want := `CHECK           STATE    FOUND
memory_files *  missing  x\x1b[2J; y
    -> x\x1b[2J\ny
epoll *         missing  -
cma             missing  EPERM
rdma            works    x\x1b[2J; y

* Weft needs it
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if err := missing(&r); err == nil || err.Error() != "missing here, and needed: memory_files, epoll" {
		t.Error(err)
	}
}

// TestDoctorAndProvider: what is needed is what the provider of a node needs.
func TestDoctorAndProvider(t *testing.T) {
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "shm", Unusable: true})
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	if r := doctor.Examine(doctor.Config{}); r.OK != infos[0].Usable {
		t.Errorf("shm is usable: %v (%s); the checks: %+v", infos[0].Usable, infos[0].Why, r.Checks)
	}
}

// TestDoctorInterrupted reads what hangs: a pipe to which nobody writes.
func TestDoctorInterrupted(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "etc/ld.so.cache")
	if err := errors.Join(os.Mkdir(filepath.Join(root, "etc"), 0o755), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	var out, said bytes.Buffer
	code := Run(ctx, Env{Stdout: &out, Stderr: &said, Root: root}, []string{"doctor"})
	if code != exitFailed || said.String() != "weft: interrupted\n" || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, &said, &out)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when the reader is there
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

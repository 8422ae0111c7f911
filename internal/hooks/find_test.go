package hooks

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

// TestFind finds nothing in this process, with the C library or without, whichever way its memory is read.
func TestFind(t *testing.T) {
	for what, f := range map[string]sys.Features{"process_vm_readv": {}, "file": sys.Features{}.Without(sys.CrossMemory)} {
		r, err := find(os.Getpid(), f)
		if err != nil || len(r.Hooks)+len(r.Unseen) > 0 || r.Lines() != nil {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if r.Library != "" && r.Objects < 2 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if r, err := FindIn(1 << 30); err == nil || !strings.Contains(err.Error(), "process 1073741824") {
		t.Errorf("nobody: %+v, %v", r, err)
	}
}

func TestIsLibrary(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/lib/x86_64-linux-gnu/libc.so.6": true, "/lib64/libc-2.28.so": true, "/lib/ld-musl-aarch64.so.1": true, "/lib/libc.musl-x86_64.so.1": true,
		"/lib/libcuda.so.1": false, "/lib/libcap.so.2": false, "/lib/ld-linux-x86-64.so.2": false, "": false, "/libc.so/x": false,
	} {
		if isLibrary(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestLines(t *testing.T) {
	r := Report{Hooks: []Hook{
		{Function: "munmap", Kind: Patched, Object: "/lib/libc.so.6", Owner: "/lib/libucm.so.0", Symbol: "ucm_munmap"},
		{Function: "madvise", Kind: Patched, Object: "/lib/libc.so.6", Owner: "/lib/libucm.so.0", Symbol: "ucm_madvise+0x4"},
		{Function: "brk", Kind: Patched, Object: "/lib/libc.so.6", Note: notUnderstood},
		{Function: "mmap", Kind: Interposed, Owner: "/lib/libasan.so", Symbol: "mmap"},
		{Function: "shmat", Kind: Rerouted, Object: "/bin/x", Owner: anonymous},
		{Function: "shmat", Kind: Rerouted, Object: "/lib/y.so", Owner: anonymous},
		{Function: "shmdt", Kind: Rerouted, Object: "/bin/x"},
	}}
	want := []string{
		"munmap, madvise patched by /lib/libucm.so.0",
		"brk patched by somebody (jump not understood)",
		"mmap interposed by /lib/libasan.so",
		"shmat rerouted by memory of no file for calls from /bin/x, /lib/y.so",
		"shmdt rerouted by somebody for calls from /bin/x",
	}
	if got := r.Lines(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for i, want := range map[int]string{
		0: "munmap: patched by /lib/libucm.so.0 (ucm_munmap)",
		1: "madvise: patched by /lib/libucm.so.0 (ucm_madvise)",
		3: "mmap: interposed by /lib/libasan.so",
		5: "shmat: rerouted by memory of no file for calls from /lib/y.so",
	} {
		if got := r.Hooks[i].String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestFileOfMapping: without the kernel's help the path has to do, which begins in a chroot or outside of it.
func TestFileOfMapping(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/view/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/view/lib/a.so", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/view", dir+"/root"); err != nil {
		t.Fatal(err)
	}
	in := process{folder: dir, root: dir + "/root"}
	here := process{folder: dir}
	for _, c := range []struct {
		p    process
		path string
		err  error
	}{
		{in, dir + "/view/lib/a.so", nil},
		{in, "/lib/a.so", nil},
		{in, "/lib/b.so", os.ErrNotExist},
		{in, dir + "/viewpoint/lib/a.so", os.ErrNotExist},
		{in, "/lib", sys.ErrNotRegular},
		{here, dir + "/view/lib/a.so", nil},
		{here, dir + "/view/lib/a.so (deleted)", errDeleted},
		{here, "/dev/zero", sys.ErrNotRegular},
	} {
		f, err := c.p.file(sys.MappingInfo{File: c.path})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.path, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// TestReadsSoMuch has a process whose files are more than anybody's: the rest of its objects is not looked at.
func TestReadsSoMuch(t *testing.T) {
	name := t.TempDir() + "/a.so"
	if err := os.WriteFile(name, made(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := process{folder: t.TempDir()}
	if _, err := p.open(sys.MappingInfo{File: name}); err != nil || p.read == 0 {
		t.Fatal(p.read, err)
	}
	p.read = maxRead
	if _, err := p.open(sys.MappingInfo{File: name}); !errors.Is(err, errMuch) {
		t.Error(err)
	}
}

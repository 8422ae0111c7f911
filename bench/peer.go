package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/interop/peers"
)

// suite is the Debian root in which the ADIOS2 side is compiled and runs.
const suite = "trixie-dev"

// errNoModule says that we were not started inside the module, where root.sh is.
var errNoModule = errors.New("bench: no interop/root.sh above the current folder")

// peer is the ADIOS2 side, compiled.
type peer struct {
	script  string // root.sh
	dir     string // with the program and the contact files, the same path inside
	version string // of ADIOS2
	shm     string // folder on a tmpfs that both ends see as /dev/shm; empty: each has its own
}

// makePeer compiles the ADIOS2 side into dir. It makes the root first where it
// has to, which takes a minute.
func makePeer(ctx context.Context, dir string) (*peer, error) {
	script, err := findScript()
	if err != nil {
		return nil, err
	}
	p := &peer{script: script, dir: dir}
	if err := os.WriteFile(filepath.Join(dir, "sst.cpp"), []byte(peers.SST), 0o600); err != nil {
		return nil, err
	}
	if _, err := output(command(ctx, script, "make", suite)); err != nil {
		return nil, err
	}
	// -O3, so that the loops over the data are as fast as they get.
	for _, args := range [][]string{
		{"g++", "-std=c++17", "-O3", "-pthread", "-I/usr/include/adios2/build/serial", "sst.cpp", "-o", "sst", "-ladios2_serial_cxx11"},
		{"mpicxx", "-std=c++17", "-O3", "-pthread", "-DUSE_MPI", "-DADIOS2_USE_MPI", "-I/usr/include/adios2/build/mpi",
			"sst.cpp", "-o", "sst-mpi", "-ladios2_mpi_cxx11_mpi", "-ladios2_mpi_cxx11"},
	} {
		if _, err := output(p.inside(ctx, args...)); err != nil {
			return nil, err
		}
	}
	p.version, err = output(p.inside(ctx, "./sst", "version"))
	return p, err
}

// inside returns a command that runs in the root.
func (p *peer) inside(ctx context.Context, args ...string) *exec.Cmd {
	words := []string{"run", suite, "--bind", p.dir, "--chdir", p.dir}
	if p.shm != "" {
		words = append(words, "--bind", p.shm+":/dev/shm")
	}
	return command(ctx, p.script, append(append(words, "--"), args...)...)
}

// share makes both ends of a stream see one /dev/shm, of their own: planes over shared memory meet there. Each run in
// a root has another one else.
func (p *peer) share() (err error) {
	p.shm, err = os.MkdirTemp("/dev/shm", "weft-bench-")
	return err
}

// close removes what share has made.
func (p *peer) close() {
	if p.shm != "" {
		_ = os.RemoveAll(p.shm)
	}
}

// ranks returns the command of one end of a stream; with more than one rank it is
// an mpirun, whose ranks yield the processor while they wait for each other: there
// are more of them than processors.
func (p *peer) ranks(ctx context.Context, n int, args ...string) *exec.Cmd {
	if n == 1 {
		return p.inside(ctx, append([]string{"./sst"}, args...)...)
	}
	return p.inside(ctx, append([]string{"mpirun", "--mca", "mpi_yield_when_idle", "1", "-n", strconv.Itoa(n), "./sst-mpi"}, args...)...)
}

// findScript looks for root.sh from the current folder upwards.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file := filepath.Join(dir, "interop", "root.sh")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errNoModule
		}
		dir = filepath.Dir(dir)
	}
}

// output runs a command that is over soon and returns what it says.
func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(errs.String(), 20))
	}
	return strings.TrimSpace(out.String()), nil
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	l := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(l[max(len(l)-n, 0):], "\n")
}

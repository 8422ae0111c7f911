package testutil

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// snapshot is what a process holds that outlives a careless test.
type snapshot struct {
	files    map[int]string    // descriptor -> target, as /proc/self/fd shows it
	mappings map[string]uint64 // a shared mapping's object -> bytes mapped
	children map[int]string    // pid -> what it is
}

func takeSnapshot() (snapshot, error) {
	// The runtime's poller makes its descriptors at first use and keeps them: have them made, so
	// that they are no news later.
	r, w, err := os.Pipe()
	if err != nil {
		return snapshot{}, fmt.Errorf("warming up the poller: %w", err)
	}
	r.Close()
	w.Close()

	var s snapshot
	if s.files, err = openFiles(); err != nil {
		return snapshot{}, err
	}
	if s.mappings, err = sharedMappings(); err != nil {
		return snapshot{}, err
	}
	if s.children, err = descendants(); err != nil {
		return snapshot{}, err
	}
	return s, nil
}

// since returns an error with a line for each thing that s has and before has not, or nil.
func (s snapshot) since(before snapshot) error {
	var errs []error
	for _, fd := range slices.Sorted(maps.Keys(s.files)) {
		// A descriptor number that names something else than before is a leak as well: the old one
		// was closed and a new one took its number.
		if before.files[fd] != s.files[fd] {
			errs = append(errs, fmt.Errorf("descriptor %d is open: %s", fd, s.files[fd]))
		}
	}
	for _, obj := range slices.Sorted(maps.Keys(s.mappings)) {
		if n := before.mappings[obj]; s.mappings[obj] > n {
			errs = append(errs, fmt.Errorf("shared memory is mapped: %s: %d bytes, %d before the tests", obj, s.mappings[obj], n))
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(s.children)) {
		if _, had := before.children[pid]; !had {
			errs = append(errs, fmt.Errorf("process %d is there: %s", pid, s.children[pid]))
		}
	}
	return errors.Join(errs...)
}

// openFiles lists the open descriptors of this process.
func openFiles() (map[int]string, error) {
	const dir = "/proc/self/fd"
	names, err := readNames(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[int]string, len(names))
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the descriptor with which we list the folder
		}
		if err != nil {
			return nil, err
		}
		files[fd] = target
	}
	return files, nil
}

func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// sharedMappings adds up the shared mappings of this process by what is mapped. Neighbouring
// mappings of one object may be merged or split by the kernel, so bytes are counted, not lines.
func sharedMappings() (map[string]uint64, error) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	return parseMappings(text)
}

// parseMappings reads the format of /proc/PID/maps (proc_pid_maps(5)):
//
//	7f1c2a000000-7f1c2a021000 rw-s 00000000 00:01 1055   /memfd:ring (deleted)
func parseMappings(text []byte) (map[string]uint64, error) {
	sum := make(map[string]uint64)
	sc := bufio.NewScanner(bytes.NewReader(text))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 5 || len(f[1]) != 4 {
			return nil, fmt.Errorf("maps: a line of another form: %q", sc.Text())
		}
		if f[1][3] != 's' {
			continue
		}
		lo, hi, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(lo, 16, 64)
		end, err2 := strconv.ParseUint(hi, 16, 64)
		if err1 != nil || err2 != nil || end < start {
			return nil, fmt.Errorf("maps: a range of another form: %q", f[0])
		}
		name := strings.Join(f[5:], " ")
		sum[fmt.Sprintf("%s (device %s, inode %s)", name, f[3], f[4])] += end - start
	}
	return sum, sc.Err()
}

package sys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var osPageSize = os.Getpagesize()

// MappingInfo is a mapping of a process, as the kernel lists it.
type MappingInfo struct {
	Addr, Len uint64 // bytes
	Readable  bool
	Writable  bool
	Shared    bool
	File      string // path; empty: anonymous. A name in brackets is not a file
	SystemV   bool   // shmat(2)
	Data      bool   // of the data segment, which brk(2) moves: "[heap]"
}

var errMaps = errors.New("sys: list of mappings")

// Mappings lists the mappings of this process.
func Mappings() ([]MappingInfo, error) { return mappings("/proc/self/maps") }

// ProcessMappings lists the mappings of a process, by address. Paths are as that process sees them. It fails if the process is gone, or another
// user's.
func ProcessMappings(pid int) ([]MappingInfo, error) {
	return mappings("/proc/" + strconv.Itoa(pid) + "/maps")
}

func mappings(file string) ([]MappingInfo, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseMaps(b)
}

// MappingsOf lists the mappings that have a byte of n from addr on. It is empty if there is none; parts of the range may
// not be mapped.
func MappingsOf(addr, n uint64) ([]MappingInfo, error) {
	all, err := Mappings()
	if err != nil {
		return nil, err
	}
	var some []MappingInfo
	for _, m := range all {
		if m.Addr < addr+n && addr < m.Addr+m.Len {
			some = append(some, m)
		}
	}
	return some, nil
}

// parseMaps reads proc_pid_maps(5): "from-to rwxp offset device inode   path" in each line.
func parseMaps(b []byte) (list []MappingInfo, err error) {
	for line := range bytes.Lines(b) {
		m, err := parseMapping(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// mappedPath is what comes after five fields and the spaces behind them; those in it are its own.
func mappedPath(line string) string {
	for range 5 {
		_, line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	return unescape.Replace(strings.TrimLeft(line, " "))
}

// unescape takes back what the kernel does to the only character that it escapes.
var unescape = strings.NewReplacer(`\012`, "\n")

func parseMapping(line string) (MappingInfo, error) {
	fields := strings.Fields(line)
	if len(fields) < 5 || len(fields[1]) < 4 {
		return MappingInfo{}, fmt.Errorf("%w: %q", errMaps, line)
	}
	from, to, _ := strings.Cut(fields[0], "-")
	low, err1 := strconv.ParseUint(from, 16, 64)
	high, err2 := strconv.ParseUint(to, 16, 64)
	if err := errors.Join(err1, err2); err != nil || high < low {
		return MappingInfo{}, fmt.Errorf("%w: %q", errMaps, line)
	}
	m := MappingInfo{Addr: low, Len: high - low, Readable: fields[1][0] == 'r', Writable: fields[1][1] == 'w', Shared: fields[1][3] == 's'}
	if len(fields) > 5 {
		m.File = mappedPath(line)
		m.Data = m.File == "[heap]"
		if strings.HasPrefix(m.File, "[") {
			m.File = ""
		}
		m.SystemV = strings.HasPrefix(m.File, "/SYSV")
	}
	return m, nil
}

// Gapless says whether mappings, which are listed by address, have all of a range.
func Gapless(list []MappingInfo, addr, n uint64) bool {
	at := addr
	for _, m := range list {
		if m.Addr > at {
			return false
		}
		at = m.Addr + m.Len
	}
	return at >= addr+n
}

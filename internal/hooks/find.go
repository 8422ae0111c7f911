package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/sys"
)

// Find looks at this process. An error means that it could not be looked at; what is wrong with a single object is in the report.
func Find() (Report, error) { return FindIn(os.Getpid()) }

// FindIn looks at a process of the same user, or at any as root, where the system lets processes trace each other (ptrace(2)).
func FindIn(pid int) (Report, error) {
	r, err := find(pid, sys.Features{})
	if err != nil {
		err = fmt.Errorf("hooks: process %d: %w", pid, err)
	}
	return r, err
}

func find(pid int, f sys.Features) (Report, error) {
	p := &process{folder: "/proc/" + strconv.Itoa(pid), report: Report{Hooks: []Hook{}, Unseen: []Unseen{}}}
	var err error
	if pid == os.Getpid() { // not by its number: /proc may be of another pid namespace
		p.folder = "/proc/self"
		p.maps, err = sys.Mappings()
	} else {
		p.root = p.folder + "/root" // of its mount namespace
		p.maps, err = mappingsOf(pid)
	}
	if err != nil {
		return p.report, err
	}
	if p.mem, err = sys.OpenProcessMemory(pid, f); err != nil {
		return p.report, err
	}
	defer p.mem.Close()
	return p.report, p.look()
}

// ErrNumbers says that /proc is of another pid namespace than this process: there the number is another process's.
var ErrNumbers = errors.New("/proc is of another pid namespace, where the number is another process's")

// mappingsOf are the mappings of another process, if its number is the same one in /proc and for system calls.
func mappingsOf(pid int) ([]sys.MappingInfo, error) {
	if self, err := os.Readlink("/proc/self"); err == nil && self != strconv.Itoa(os.Getpid()) {
		return nil, ErrNumbers
	}
	return sys.ProcessMappings(pid)
}

// process is one that is looked at.
type process struct {
	folder string // in /proc
	root   string // where its files are
	maps   []sys.MappingInfo
	mem    *sys.ProcessMemory
	loaded []loaded // in the order of the loader
	read   int64    // bytes of files
	report Report
}

// loaded is an object in memory.
type loaded struct {
	*object
	path string
	bias uint64
}

// isLibrary knows the files of C libraries: of glibc, libc.so.6 or libc-2.28.so; of musl, which is its own loader.
func isLibrary(path string) bool {
	base := filepath.Base(path)
	return slices.ContainsFunc([]string{"libc.so", "libc-2.", "libc.musl-", "ld-musl-"}, func(p string) bool { return strings.HasPrefix(base, p) })
}

var (
	errUnloaded = errors.New("a C library is mapped, but is not in the list of what is loaded")
	errDeleted  = errors.New("its file was replaced or removed while it runs")
)

// look fills the report.
func (p *process) look() error {
	auxv, err := os.ReadFile(p.folder + "/auxv")
	if err != nil {
		return err
	}
	list, err := links(p.mem, auxv)
	if err != nil {
		if !slices.ContainsFunc(p.maps, func(m sys.MappingInfo) bool { return isLibrary(m.File) }) && (errors.Is(err, errStatic) || errors.Is(err, errNoLinks)) {
			return nil // nothing that could be hooked
		}
		return err
	}
	library, err := p.load(list)
	if err != nil || library < 0 {
		return err
	}
	p.report.Library = p.loaded[library].path
	p.patched(p.loaded[library], p.loaded[library].defines)
	for _, l := range p.loaded {
		p.patched(l, l.stubs) // a patcher that takes the function's address there may find this one
	}
	p.interposed(p.loaded[:library])
	p.rerouted(library)
	return nil
}

// load reads the files of what is loaded, and says which is the C library: -1 if none is.
func (p *process) load(list []link) (library int, err error) {
	library = -1
	for _, l := range list {
		m, _ := p.mapping(l.dynamic)
		path := m.File
		if path == "" { // the kernel's own, or a list of nonsense
			continue
		}
		o, err := p.open(m)
		isLib := isLibrary(path)
		if err != nil {
			if isLib {
				return -1, fmt.Errorf("%s: %w", path, err)
			}
			p.report.Unseen = append(p.report.Unseen, Unseen{path, err.Error()})
			continue
		}
		if isLib && library < 0 {
			library = len(p.loaded)
		}
		p.loaded = append(p.loaded, loaded{o, path, l.bias})
	}
	p.report.Objects = len(p.loaded)
	if library < 0 && slices.ContainsFunc(p.maps, func(m sys.MappingInfo) bool { return isLibrary(m.File) }) {
		return -1, errUnloaded
	}
	return library, nil
}

// mapping finds what is mapped at an address.
func (p *process) mapping(addr uint64) (sys.MappingInfo, bool) {
	i := slices.IndexFunc(p.maps, func(m sys.MappingInfo) bool { return m.Addr <= addr && addr-m.Addr < m.Len })
	if i < 0 {
		return sys.MappingInfo{}, false
	}
	return p.maps[i], true
}

func (p *process) open(m sys.MappingInfo) (*object, error) {
	f, err := p.file(m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readObject(measured{f, &p.read})
}

// file opens what is mapped, and nothing that could block. The kernel has the file itself for who has the capability (CAP_CHECKPOINT_RESTORE), also one that was removed; for others its
// path has to do, as the process sees it. In a chroot in another mount namespace paths begin outside of the chroot.
func (p *process) file(m sys.MappingInfo) (*os.File, error) {
	if f, err := sys.OpenRegular(fmt.Sprintf("%s/map_files/%x-%x", p.folder, m.Addr, m.Addr+m.Len)); err == nil {
		return f, nil
	}
	if strings.HasSuffix(m.File, deleted) {
		return nil, errDeleted
	}
	if p.root != "" {
		if root, err := os.Readlink(p.root); err == nil && root != "/" && strings.HasPrefix(m.File, root+"/") {
			if f, err := sys.OpenRegular(p.root + strings.TrimPrefix(m.File, root)); err == nil {
				return f, nil
			}
		}
	}
	return sys.OpenRegular(p.root + m.File)
}

// deleted is what the kernel adds to the path of a file that was removed.
const deleted = " (deleted)"

// found notes a hook, and whose it is.
func (p *process) found(h Hook) {
	if h.Target != 0 {
		h.Target = p.throughMemory(h.Target)
		h.Owner, h.Symbol = p.owner(h.Target)
	}
	p.report.Hooks = append(p.report.Hooks, h)
}

// hops is how many jumps in memory of no file are followed: hooks put a jump there to come by more space, or to call the function itself.
const hops = 4

// throughMemory follows jumps through memory of no file.
func (p *process) throughMemory(at uint64) uint64 {
	for range hops {
		if m, ok := p.mapping(at); !ok || m.File != "" {
			break
		}
		to, ok := p.jumpAt(at)
		if !ok {
			break
		}
		at = to
	}
	return at
}

func (p *process) jumpAt(at uint64) (uint64, bool) {
	b, err := peek(p.mem, at, maxJump)
	if err != nil || len(p.loaded) == 0 {
		return 0, false
	}
	return jump(p.loaded[0].machine, b, at, p.word)
}

func (p *process) word(addr uint64) (uint64, bool) {
	b, err := peek(p.mem, addr, 8)
	if err != nil {
		return 0, false
	}
	return word(b, 0), true
}

// owner says which object, and what of it, lies at an address.
func (p *process) owner(at uint64) (path, symbol string) {
	m, ok := p.mapping(at)
	switch {
	case !ok:
		return "", ""
	case m.File == "":
		return anonymous, ""
	}
	i := slices.IndexFunc(p.loaded, func(l loaded) bool { return l.path == m.File })
	if i < 0 {
		return m.File, ""
	}
	f, err := p.file(m)
	if err != nil {
		return m.File, ""
	}
	defer f.Close()
	symbol, _ = nearest(measured{f, &p.read}, at-p.loaded[i].bias) // without one the path has to do
	return m.File, symbol
}

// patched compares functions, with their addresses in an object, with its file.
func (p *process) patched(l loaded, list map[string]uint64) {
	for _, name := range functions {
		addr, ok := list[name]
		want := l.code[name]
		if !ok || len(want) == 0 || name == "mmap64" && addr == list["mmap"] {
			continue
		}
		at := l.bias + addr
		got, err := peek(p.mem, at, len(want))
		if err != nil {
			p.report.Unseen = append(p.report.Unseen, Unseen{l.path + ": " + name, err.Error()})
			continue
		}
		if bytes.Equal(got, want) {
			continue
		}
		h := Hook{Function: name, Kind: Patched, Object: l.path}
		if to, ok := p.jumpAt(at); ok {
			h.Target = to
		} else {
			h.Note = notUnderstood
		}
		p.found(h)
	}
}

// interposed looks who comes before the C library.
func (p *process) interposed(before []loaded) {
	for _, name := range functions {
		for _, l := range before {
			if at, ok := l.defines[name]; ok {
				p.found(Hook{Function: name, Kind: Interposed, Target: l.bias + at})
			}
		}
	}
}

// rerouted looks at the slots of all objects.
func (p *process) rerouted(library int) {
	for _, l := range p.loaded {
		for _, s := range l.slots {
			to, ok := p.word(l.bias + s.addr)
			if !ok {
				p.report.Unseen = append(p.report.Unseen, Unseen{l.path + ": slot of " + s.function, "its memory cannot be read"})
				continue
			}
			if to == s.initial || s.initial != 0 && to == l.bias+s.initial || to == 0 || p.proper(library, s.function, to) {
				continue
			}
			p.found(Hook{Function: s.function, Kind: Rerouted, Object: l.path, Target: to})
		}
	}
}

// proper says whether the loader itself may have put an address into a slot.
func (p *process) proper(library int, function string, to uint64) bool {
	if c := p.loaded[library]; to-c.bias >= c.begin && to-c.bias < c.end {
		return true
	}
	for i, l := range p.loaded {
		if at, ok := l.stubs[function]; ok && l.bias+at == to {
			return true
		}
		if at, ok := l.defines[function]; ok && i < library && l.bias+at == to {
			return true
		}
	}
	return false
}

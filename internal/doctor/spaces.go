package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Namespace is one that this process is in.
type Namespace struct {
	Name  string `json:"name"`  // "user", "pid", "net"
	Inode uint64 `json:"inode"` // its number; 0: not known
	Init  *bool  `json:"init"`  // it is the one that the system started with; nil: not known
}

// The numbers of the namespaces that the system starts with: linux/proc_ns.h, since 3.8; that of net since 6.18 only.
var initSpaces = map[string]uint64{"user": 0xeffffffd, "pid": 0xeffffffc, "net": 0xeffffff9}

func namespaces(root string) []Namespace {
	var list []Namespace
	for _, name := range []string{"user", "pid", "net"} {
		n := Namespace{Name: name, Inode: spaceOf(root, "self", name)}
		first := initSpaces[name]
		switch {
		case n.Inode == 0:
		case n.Inode == first:
			n.Init = pointer(true)
		case name != "net" || spaceOf(root, "1", "pid") == initSpaces["pid"] && spaceOf(root, "1", name) != 0:
			n.Init = pointer(name == "net" && spaceOf(root, "1", name) == n.Inode)
		}
		list = append(list, n)
	}
	return list
}

func pointer[T any](v T) *T { return &v }

// spaceOf reads the number in "user:[4026531837]"; 0 if it cannot.
func spaceOf(root, pid, name string) uint64 {
	text, err := os.Readlink(filepath.Join(root, "proc", pid, "ns", name))
	if err != nil {
		return 0
	}
	text, isLink := strings.CutPrefix(text, name+":[")
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	if err != nil || !isLink {
		return 0
	}
	return n
}

var spaceRemedies = map[string]string{
	"user": "run programs that share memory in one user namespace (one container, or --userns=host)",
	"pid":  "nothing, for programs in one pid namespace; others are not seen by their number, so that memory is not read across (--pid=host)",
	"net":  "run programs that share memory in one network namespace (--network=host or container:NAME), or give them the option folder of shm, a shared folder",
}

// spaces are checks of the namespaces.
func (r *Report) spaces() []Check {
	var list []Check
	for _, n := range r.Namespaces {
		c := Check{Name: n.Name + "_namespace", State: Works, Found: "not known whether it is the system's first one"}
		switch {
		case n.Inode == 0:
			c.State, c.Found, c.Remedy = Limited, "not known: /proc/self/ns cannot be read", "mount /proc"
		case n.Init != nil && *n.Init:
			c.Found = "the system's first one"
		case n.Init != nil:
			c.State, c.Found, c.Remedy = Limited, "one of its own, "+strconv.FormatUint(n.Inode, 10), spaceRemedies[n.Name]
		}
		list = append(list, c)
	}
	return list
}

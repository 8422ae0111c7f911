package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Device is an RDMA device.
type Device struct {
	Name  string `json:"name"`
	Ports []Port `json:"ports"`
}

// Port is one of a device.
type Port struct {
	Number string `json:"number"`
	State  string `json:"state"` // "4: ACTIVE", as the kernel says it
}

func devices(root string) []Device {
	list := []Device{}
	base := filepath.Join(root, "sys/class/infiniband")
	entries, err := os.ReadDir(base)
	if err != nil {
		return list
	}
	for _, e := range entries {
		d := Device{Name: e.Name(), Ports: []Port{}}
		ports, err := os.ReadDir(filepath.Join(base, e.Name(), "ports"))
		if err != nil {
			ports = nil
		}
		for _, p := range ports {
			state, err := os.ReadFile(filepath.Join(base, e.Name(), "ports", p.Name(), "state"))
			if err != nil {
				state = []byte("not known")
			}
			d.Ports = append(d.Ports, Port{p.Name(), strings.TrimSpace(string(state))})
		}
		list = append(list, d)
	}
	return list
}

// Library is a file of a communication library.
type Library struct {
	Name string `json:"name"` // "libfabric", "ucx"
	Path string `json:"path"`
}

// libraryFiles are the beginnings of the names of files.
var libraryFiles = map[string]string{"libfabric": "libfabric.so", "ucx": "libucp.so"}

// libraryFolders are where libraries are that the cache of the dynamic loader does not list.
var libraryFolders = []string{
	"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/usr/lib/*-linux-gnu", "/lib/*-linux-gnu",
	"/opt/amazon/efa/lib", "/opt/amazon/efa/lib64", "/opt/cray/libfabric/*/lib64", "/opt/ucx/lib", "/opt/cray/pe/cray-ucx/*/ucx/lib",
}

// libraries looks for files. The numbers in their names are of the interface (libfabric 1.17 is libfabric.so.1.20.0), so they are not taken for versions.
func libraries(root, more string) []Library {
	list := []Library{}
	candidates := cached(root)
	for _, dir := range slices.Concat(libraryFolders, filepath.SplitList(more)) {
		for _, file := range libraryFiles {
			found, err := filepath.Glob(filepath.Join(root, dir, file+"*"))
			if err == nil {
				candidates = append(candidates, found...)
			}
		}
	}
	for _, path := range candidates {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		for name, file := range libraryFiles {
			l := Library{name, real}
			if strings.HasPrefix(filepath.Base(real), file) && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	slices.SortFunc(list, func(a, b Library) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path)) })
	return list
}

// cached lists the files of these libraries that the cache of the dynamic loader names: its strings end with zeros.
func cached(root string) []string {
	b, err := os.ReadFile(filepath.Join(root, "etc/ld.so.cache"))
	if err != nil {
		return nil // musl has none
	}
	var list []string
	for text := range strings.SplitSeq(string(b), "\x00") {
		for _, file := range libraryFiles {
			if strings.HasPrefix(text, "/") && strings.HasPrefix(filepath.Base(text), file) {
				list = append(list, filepath.Join(root, text))
			}
		}
	}
	return list
}

// network is what there is between nodes.
func (r *Report) network() []Check {
	rdma := Check{Name: "rdma", State: Missing, Found: "no device in /sys/class/infiniband", Remedy: "nothing: on one node none is needed, and between nodes Weft uses TCP"}
	for i, d := range r.Devices {
		if i == 0 {
			rdma = Check{Name: "rdma", State: Limited, Remedy: "bring up the link: no port of a device is active"}
		} else {
			rdma.Found += ", "
		}
		rdma.Found += d.Name
		for _, p := range d.Ports {
			rdma.Found += fmt.Sprintf(" (port %s is %s)", p.Number, p.State)
			if strings.Contains(p.State, "ACTIVE") {
				rdma.State, rdma.Remedy = Works, ""
			}
		}
	}
	return []Check{rdma, r.library("libfabric", "nothing, unless Weft is to use it: install libfabric 1"), r.library("ucx", "nothing: Weft does not use it")}
}

func (r *Report) library(name, remedy string) Check {
	var found []string
	for _, l := range r.Libraries {
		if l.Name == name {
			found = append(found, l.Path)
		}
	}
	if found == nil {
		return Check{Name: name, State: Missing, Found: "not found", Remedy: remedy}
	}
	return Check{Name: name, State: Works, Found: strings.Join(found, ", ")}
}

package doctor

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/internal/host"
)

// State is how something stands.
type State string

// The states.
const (
	Works   State = "works"
	Limited State = "limited" // it works, but not for all
	Missing State = "missing"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Needed bool   `json:"needed"` // Weft does not work without it
	State  State  `json:"state"`
	Found  string `json:"found"`
	Remedy string `json:"remedy"` // what to do about it, if it matters; empty if it works
}

// Report is what was found. Names of checks stay what they are.
type Report struct {
	OK         bool         `json:"ok"` // nothing is missing that is needed
	Checks     []Check      `json:"checks"`
	Host       host.Facts   `json:"host"`
	Namespaces []Namespace  `json:"namespaces"`
	Devices    []Device     `json:"rdma_devices"`
	Libraries  []Library    `json:"libraries"`
	Hooks      HooksReport  `json:"hooks"`
	Monitor    MonitorState `json:"monitor"`
}

// HooksReport says who has hooked memory functions of the C library in a process.
type HooksReport struct {
	PID   int    `json:"pid"`
	Error string `json:"error"` // why that is not known
	hooks.Report

	why error
}

// Config says what to look at.
type Config struct {
	Root        string // where the files of the machine are; "" means /
	PID         int    // the process in which hooks are looked for; 0 means this one
	LibraryPath string // folders that are looked through for libraries as well, as in LD_LIBRARY_PATH
}

// Examine looks at everything. It takes some milliseconds.
func Examine(c Config) Report {
	if c.Root == "" {
		c.Root = "/"
	}
	if c.PID == 0 {
		c.PID = os.Getpid()
	}
	r := Report{
		Host: host.Read(os.DirFS(c.Root)), Namespaces: namespaces(c.Root), Devices: devices(c.Root),
		Libraries: libraries(c.Root, c.LibraryPath), Hooks: hooksOf(c.PID), Monitor: monitor(),
	}
	r.Checks = slices.Concat(needed(), features(), r.limits(), r.spaces(), r.network(), []Check{r.Hooks.check(), r.Monitor.check()})
	r.OK = !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Needed && c.State == Missing })
	return r
}

// tried is a check of something that was tried.
func tried(name, works string, err error, remedy string) Check {
	switch {
	case err == nil:
		return Check{Name: name, State: Works, Found: works}
	case noDescriptor(err):
		remedy = moreFiles
	}
	return Check{Name: name, State: Missing, Found: err.Error(), Remedy: remedy}
}

const moreFiles = "more descriptors: ulimit -n, up to its hard limit"

// noDescriptor says that something failed only for want of a descriptor.
func noDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

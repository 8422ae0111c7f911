package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/memmon"
)

func hooksOf(pid int) HooksReport {
	r, err := hooks.FindIn(pid)
	h := HooksReport{PID: pid, Report: r, why: err}
	if err != nil {
		h.Error = err.Error()
	}
	return h
}

// check says whose hooks there are, and what that means.
func (h *HooksReport) check() Check {
	c := Check{Name: "c_library", State: Works}
	which := fmt.Sprintf("process %d", h.PID)
	if h.PID == os.Getpid() {
		which = "this process"
	}
	switch {
	case h.Error != "":
		c.State, c.Found, c.Remedy = Limited, "hooks are not known: "+h.Error, h.remedy()
	case h.Library == "":
		c.Found = which + " is static: it has no C library that could be hooked"
		if h.PID == os.Getpid() {
			c.Found += "; --pid looks at another one"
		}
	case len(h.Hooks) > 0:
		c.State, c.Found = Limited, which+": "+strings.Join(h.Lines(), "; ")+"; they see no calls that pass the library by, as Go's do"
		c.Remedy = "one owner of such hooks in a process: turn them off in the others (UCX_MEM_EVENTS=n, FI_MR_CACHE_MONITOR=disabled, OMPI_MCA_memory=^patcher), or have them tell Weft (weft_memory_events.h)"
	default:
		c.Found = fmt.Sprintf("%s: nobody has hooked %s (%d objects)", which, h.Library, h.Objects)
	}
	if len(h.Unseen) > 0 {
		if c.State == Works { // who hooks may be among them
			c.State, c.Remedy = Limited, "look as root, who can read files that were removed"
		}
		c.Found += fmt.Sprintf("; %d could not be looked at, as %s: %s", len(h.Unseen), h.Unseen[0].Object, h.Unseen[0].Why)
	}
	return c
}

// remedy is for hooks that are not known.
func (h *HooksReport) remedy() string {
	switch gone := errors.Is(h.why, fs.ErrNotExist) || errors.Is(h.why, syscall.ESRCH); {
	case noDescriptor(h.why):
		return moreFiles
	case errors.Is(h.why, hooks.ErrNumbers), gone && h.PID == os.Getpid():
		return "mount /proc, of this pid namespace"
	case gone:
		return "look at a process that runs; if it does, as the same user or as root: /proc hides those of others (hidepid)"
	case errors.Is(h.why, fs.ErrPermission):
		return "look as the same user or as root; in a container with CAP_SYS_PTRACE; with ptrace_scope 0"
	}
	return "nothing: such a process cannot be looked at"
}

// MonitorState says which memory monitor would serve a program that asks for what the environment says (memmon's FromEnv).
type MonitorState struct {
	Serves   string   `json:"serves"`   // its name, or "none"
	State    string   `json:"state"`    // "running" after it has proven itself; "failed"; "idle" if there is none
	Error    string   `json:"error"`    // why it does not serve, or what is wrong with the environment
	Disabled bool     `json:"disabled"` // nothing at all is cached
	Answers  []string `json:"answers"`
	Gaps     []Gap    `json:"gaps"`
	Choices  []Choice `json:"choices"`

	why error
}

// Gap is a class of memory that the monitor does not answer for: it is not cached, but registered for each operation.
type Gap struct {
	Memory string   `json:"memory"`
	Misses []string `json:"misses"` // what can happen to it that is not seen; empty: it is not watched at all
}

// Choice is a monitor that could be chosen.
type Choice struct {
	Name  string `json:"name"`
	Works bool   `json:"works"`
	Error string `json:"error"`
}

// monitor has each monitor prove itself.
func monitor() MonitorState {
	m := MonitorState{Serves: "none", Answers: []string{}, Gaps: []Gap{}, Choices: []Choice{}}
	for _, name := range memmon.Names() {
		_, err := serve(func(a *memmon.Arbiter) error { return a.Choose(name) })
		m.Choices = append(m.Choices, Choice{name, err == nil, text(err)})
	}
	s, err := serve((*memmon.Arbiter).FromEnv)
	m.State, m.Error, m.why, m.Disabled = s.State.String(), text(err), err, s.Disabled
	if s.Monitor != "" {
		m.Serves = s.Monitor
	}
	for _, class := range memmon.AllMemory() {
		answers, misses := s.Coverage.Answers(class)
		if answers && err == nil {
			m.Answers = append(m.Answers, class.String())
			continue
		}
		g := Gap{Memory: class.String(), Misses: []string{}}
		for _, e := range misses {
			g.Misses = append(g.Misses, e.String())
		}
		m.Gaps = append(m.Gaps, g)
	}
	return m
}

// serve attaches to a monitor as a cache does, and says how that went.
func serve(choose func(*memmon.Arbiter) error) (memmon.Status, error) {
	a, err := memmon.NewArbiter()
	if err != nil {
		return memmon.Status{}, err
	}
	defer a.Close()
	if err := choose(a); err != nil {
		return a.Status(), err
	}
	detach := a.Attach(func(memmon.Range) {}, nil)
	defer detach()
	s := a.Status()
	return s, s.Why
}

// other is what could answer for memory of C.
func (m *MonitorState) other() string {
	const hooks = "hooks that tell Weft (weft_memory_events.h)"
	if slices.ContainsFunc(m.Choices, func(c Choice) bool { return c.Name == "userfaultfd" && c.Works }) {
		return "WEFT_MR_MONITOR=userfaultfd, if it calls FromEnv of package memmon, or " + hooks
	}
	return hooks
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func (m *MonitorState) check() Check {
	c := Check{Name: "memory_monitor", State: Works, Found: m.Serves}
	var gaps []string
	for _, g := range m.Gaps {
		gaps = append(gaps, g.Memory)
	}
	switch {
	case noDescriptor(m.why):
		c.State, c.Found, c.Remedy = Limited, "not known: "+m.Error, moreFiles
	case m.Error != "" && m.State != memmon.Failed.String():
		c.State, c.Found, c.Remedy = Limited, "the environment is refused: "+m.Error, "set that to what there is here, or unset it"
	case m.Error != "":
		c.State, c.Found, c.Remedy = Limited, m.Serves+" does not serve: "+m.Error, "WEFT_MR_MONITOR=none, or make what it needs available"
	case m.Disabled:
		c.State, c.Found, c.Remedy = Limited, "caches are off: all memory is registered for each operation", "unset WEFT_MR_CACHE, or set it to on"
	case m.Serves == "none":
		c.State, c.Found = Limited, "none: memory of Weft's arenas and of the Go heap is cached, other memory if its owner tells"
		c.Remedy = "nothing, unless a program sends from C memory: then " + m.other()
	case len(gaps) > 0:
		c.Found += " answers for " + strings.Join(m.Answers, ", ") + ", not for " + strings.Join(gaps, ", ")
	}
	return c
}

package hooks

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is how a function was changed.
type Kind string

// The kinds.
const (
	Patched    Kind = "patched"    // its first bytes are others
	Interposed Kind = "interposed" // another object defines it, and comes first
	Rerouted   Kind = "rerouted"   // the slot by which an object calls it holds another address
)

// Report is what was found in a process.
type Report struct {
	Library string   `json:"library"` // path of the C library; empty: there is none, so nothing can be hooked
	Objects int      `json:"objects"` // programs and libraries that were looked at
	Hooks   []Hook   `json:"hooks"`
	Unseen  []Unseen `json:"unseen"` // objects that could not be looked at
}

// Hook is a function that is not what it was.
type Hook struct {
	Function string `json:"function"`
	Kind     Kind   `json:"kind"`
	Object   string `json:"object"` // path of the object that was changed: the C library, or whose slot it is. Empty if interposed
	Target   uint64 `json:"target"` // address of what runs instead; 0: not known
	Owner    string `json:"owner"`  // path of the object in which that lies; empty: not known
	Symbol   string `json:"symbol"` // nearest symbol there, with the distance: "ucm_munmap+0x4"; empty: none
	Note     string `json:"note"`   // what is to be known besides
}

// Unseen is an object that could not be looked at.
type Unseen struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

const notUnderstood = "jump not understood"

// anonymous is the owner of code that lies in no file.
const anonymous = "memory of no file"

// who says whose a hook is.
func (h Hook) who() string {
	owner := h.Owner
	switch {
	case owner == "" && h.Note != "":
		return "somebody (" + h.Note + ")"
	case owner == "":
		return "somebody"
	case h.Symbol != "":
		base, _, _ := strings.Cut(h.Symbol, "+")
		if base != h.Function {
			return owner + " (" + base + ")"
		}
	}
	return owner
}

// String says it in a line.
func (h Hook) String() string {
	s := fmt.Sprintf("%s: %s by %s", h.Function, h.Kind, h.who())
	if h.Kind == Rerouted {
		s += " for calls from " + h.Object
	}
	return s
}

// Lines says it in short: one line for each owner and kind, with the functions. It is empty if nothing was found.
func (r Report) Lines() []string {
	type key struct {
		owner string
		kind  Kind
	}
	var order []key
	functions, from := map[key][]string{}, map[key][]string{}
	for _, h := range r.Hooks {
		k := key{h.Owner, h.Kind}
		if h.Owner == "" {
			k.owner = h.who()
		}
		if !slices.Contains(order, k) {
			order = append(order, k)
		}
		functions[k] = with(functions[k], h.Function)
		from[k] = with(from[k], h.Object)
	}
	var lines []string
	for _, k := range order {
		line := fmt.Sprintf("%s %s by %s", strings.Join(functions[k], ", "), k.kind, k.owner)
		if k.kind == Rerouted {
			line += " for calls from " + strings.Join(from[k], ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

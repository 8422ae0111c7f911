package memmon

import (
	"errors"
	"fmt"
	"slices"
)

var errSetting = errors.New("memmon: no such setting")

// choices are the monitors that [Arbiter.Choose] knows, by name; they are made for an arbiter's events.
var choices = map[string]func(*events) (Monitor, error){
	"none":        func(*events) (Monitor, error) { return nil, nil }, //nolint:nilnil // none is nil
	"userfaultfd": newUserfault,
}

// Names lists what [Arbiter.Choose] takes.
func Names() []string {
	var list []string
	for name := range choices {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func monitorOf(name string, a *Arbiter) (Monitor, error) {
	make, ok := choices[name]
	if !ok {
		return nil, fmt.Errorf("memmon: no monitor is called %q; there are %q: %w", name, Names(), errSetting)
	}
	m, err := make(a.events)
	if err != nil {
		return nil, fmt.Errorf("memmon: %s: %w: %w", name, ErrMonitor, err)
	}
	return m, nil
}

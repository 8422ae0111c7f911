package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine is where the numbers come from.
type machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	Go     string `json:"go"`
	ADIOS2 string `json:"adios2,omitempty"`
}

// String is the machine line of the table.
func (m machine) String() string {
	adios := m.ADIOS2
	if adios == "" {
		adios = "none"
	}
	return fmt.Sprintf("%s, ADIOS2 %s", m.place(), adios)
}

// place is the machine without ADIOS2, where that has no part.
func (m machine) place() string {
	return fmt.Sprintf("%d x %s (%s), Linux %s, %s", m.CPUs, m.CPU, m.Arch, m.Kernel, m.Go)
}

func describeMachine() machine {
	m := machine{CPU: "unknown processor", CPUs: runtime.NumCPU(), Kernel: "unknown", Arch: runtime.GOARCH, Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name := cpuName(string(b)); name != "" {
			m.CPU = name
		}
	}
	return m
}

// cpuName finds the name of the first processor. arm64 kernels give numbers
// only.
func cpuName(cpuinfo string) string {
	found := map[string]string{}
	s := bufio.NewScanner(strings.NewReader(cpuinfo))
	for s.Scan() {
		key, value, ok := strings.Cut(s.Text(), ":")
		key = strings.TrimSpace(key)
		if _, seen := found[key]; ok && !seen {
			found[key] = strings.TrimSpace(value)
		}
	}
	if name := found["model name"]; name != "" {
		return name
	}
	if part := found["CPU part"]; part != "" {
		return "implementer " + found["CPU implementer"] + " part " + part
	}
	return ""
}

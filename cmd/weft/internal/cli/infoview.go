package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/host"
)

// reachText says whom a provider reaches.
func reachText(reach string) string {
	switch reach {
	case "network":
		return "other nodes"
	case "node":
		return "this node"
	case "process":
		return "this process"
	}
	return "-"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// orDash fills an empty cell.
func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}

func wordOrDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// shortAddress leaves out of the form of addresses what a program need not give.
func shortAddress(form string) string {
	short, _, _ := strings.Cut(form, "[")
	return short
}

// comm are the capabilities that the column of reach tells.
var comm = []string{"local-comm", "remote-comm"}

// writeTable has a line for each provider, what is odd about it, and the machine.
func (o *infoObject) writeTable(out *output) {
	rows := [][]string{{"PROVIDER", "USABLE", "REACHES", "DOMAIN", "ENDPOINT", "ADDRESS", "PROGRESS", "WAIT", "CAPS"}}
	for _, p := range o.Providers {
		caps := slices.DeleteFunc(slices.Clone(p.Caps), func(c string) bool { return slices.Contains(comm, c) })
		rows = append(rows, []string{
			printable(p.Provider), yesNo(p.Usable), reachText(p.Reach), wordOrDash(p.Domain), wordOrDash(p.Endpoint),
			wordOrDash(shortAddress(p.Address)), orDash(p.Progress), orDash(p.Wait), printable(orDash(caps)),
		})
	}
	writeRows(out, "", rows)
	for _, p := range o.Providers {
		if p.Why != "" {
			out.printf("%s: %s\n", printable(p.Provider), printable(p.Why))
		}
		for _, f := range p.Features {
			if !f.On && p.Usable {
				out.printf("%s: no %s\n", printable(p.Provider), featureText(f))
			}
		}
	}
	out.text("\nhost\n")
	writeRows(out, "  ", hostRows(&o.Host))
}

// writeRows writes aligned columns, all to the left.
func writeRows(out *output, indent string, rows [][]string) {
	for _, line := range alignColumns(rows, len(rows[0])) {
		out.text(indent + strings.TrimPrefix(line, "  ") + "\n")
	}
}

// writeAll has a paragraph for each provider.
func (o *infoObject) writeAll(out *output) {
	for _, p := range o.Providers {
		out.printf("%s\n", printable(p.Provider))
		usable := yesNo(p.Usable)
		if p.Why != "" {
			usable += ": " + printable(p.Why)
		}
		rows := [][]string{{"usable", usable}}
		add := func(name, value string) {
			if value == "" {
				value = "-"
			}
			rows = append(rows, []string{name, printable(value)})
		}
		add("version", p.Version)
		add("domain", p.Domain)
		add("endpoint", p.Endpoint)
		add("addresses", p.Address)
		add("reaches", reachText(p.Reach))
		add("caps", orDash(p.Caps))
		add("progress", progressText(p.Progress))
		add("wait", orDash(p.Wait))
		add("mr_mode", orDash(p.Memory))
		rows = append(rows, limitRows(&p.Limits)...)
		name := "features"
		for _, f := range p.Features {
			add(name, onOff(f.On)+" "+featureText(f))
			name = ""
		}
		writeRows(out, "  ", rows)
		out.text("\n")
	}
	out.text("host\n")
	writeRows(out, "  ", hostRows(&o.Host))
}

func progressText(list []string) string {
	if len(list) < 2 {
		return orDash(list)
	}
	return fmt.Sprintf("%s (default) %s", list[0], strings.Join(list[1:], " "))
}

func onOff(on bool) string {
	if on {
		return "on "
	}
	return "off"
}

func featureText(f featureInfo) string {
	if f.Detail == "" {
		return printable(f.Name)
	}
	return printable(f.Name + ": " + f.Detail)
}

func limitRows(l *limitsInfo) [][]string {
	rows := [][]string{}
	for _, row := range []struct {
		name  string
		value *uint64
		unit  string
	}{
		{"message", l.Message, "bytes"}, {"read, write", l.RMA, "bytes"}, {"inject", l.Inject, "bytes"}, {"atomic", l.AtomicLen, "bytes"},
		{"segments", l.Segments, "local"}, {"", l.Remotes, "remote"}, {"tag", l.TagBits, "bits"}, {"data", l.DataBytes, "bytes"},
		{"key", l.KeyBytes, "bytes"}, {"peers", l.Peers, ""}, {"idle peer", &l.IdlePeer, "bytes of memory"},
	} {
		text := "no limit"
		if row.value != nil {
			text = strings.TrimSpace(strconv.FormatUint(*row.value, 10) + " " + row.unit)
		} else if row.name == "" {
			text = "no limit " + row.unit
		}
		rows = append(rows, []string{row.name, text})
	}
	return rows
}

// hostRows says what of the machine bounds communication.
func hostRows(f *host.Facts) [][]string {
	kernel := printable(f.Kernel)
	if f.Seccomp {
		kernel += ", under a filter of system calls (seccomp)"
	}
	return [][]string{
		{"kernel", orUnknown(kernel)},
		{"ptrace_scope", ptraceText(f.Ptrace)},
		{"memlock", limitText(f.Memlock, bytesText)},
		{"file size", limitText(f.File, bytesText)},
		{"open files", limitText(f.Open, func(n uint64) string { return strconv.FormatUint(n, 10) })},
		{"memory", memoryText(f.Free)},
		{"cgroup", cgroupText(f.Cgroup)},
		{"hugetlb", hugeText(f.Huge)},
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func bytesText(n uint64) string { return byteText(float64(n)) }

// ptraceText says what Yama allows process_vm_readv and process_vm_writev.
func ptraceText(scope *int) string {
	if scope == nil {
		return "none: processes of one user may copy each other's memory"
	}
	switch *scope {
	case 0:
		return "0: processes of one user may copy each other's memory"
	case 1:
		return "1: only a parent may copy the memory of its children"
	case 2:
		return "2: only the superuser may copy memory of processes"
	}
	return fmt.Sprintf("%d: nobody may copy memory of processes", *scope)
}

func limitText(l *host.Limit, value func(uint64) string) string {
	switch {
	case l == nil:
		return "unknown"
	case l.Unlimited:
		return "no limit"
	}
	return value(l.Value)
}

func memoryText(free *uint64) string {
	if free == nil {
		return "unknown"
	}
	return bytesText(*free) + " available"
}

func cgroupText(c *host.Cgroup) string {
	if c == nil {
		return "no limit of memory"
	}
	return fmt.Sprintf("room for %s: %s of %s used in %s", bytesText(c.Room()), bytesText(c.Used), bytesText(c.Limit), printable(c.Path))
}

func hugeText(pools []host.Pool) string {
	if len(pools) == 0 {
		return "no pages reserved"
	}
	var list []string
	for _, p := range pools {
		list = append(list, fmt.Sprintf("%d of %s of %s free", p.Free, plural(int(min(p.Pages, 1<<31-1)), "page"), pageText(p.Size)))
	}
	return strings.Join(list, ", ")
}

// pageText is the size of a page, which is a power of two.
func pageText(n uint64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB"}
	unit := 0
	for n%1024 == 0 && n > 0 && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

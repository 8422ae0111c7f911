package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-fabric/weft/sst"
)

// statView renders snapshots for people.
type statView struct {
	name string
	past history
}

// lines renders one snapshot; rates need one before.
func (v *statView) lines(st sst.Stat) []string {
	r := v.past.add(st)
	list := []string{
		fmt.Sprintf("stream   %s at %s, %s, %s", v.name, st.Addr, plural(st.Ranks, "writer rank"), planeText(st.Plane)),
		"steps    " + stepsText(st, r),
		"data     " + dataText(st, r),
		"queue    " + queueText(st),
		"readers  " + readersText(st),
	}
	list = append(list, readerTable(st)...)
	for i, line := range list {
		list[i] = printable(line)
	}
	return list
}

func stepsText(st sst.Stat, r *rates) string {
	text := strconv.FormatUint(st.NextStep, 10)
	if r != nil {
		text += fmt.Sprintf(", %.1f/s", r.Steps)
	}
	if st.Dropped > 0 {
		text += fmt.Sprintf(", %d dropped", st.Dropped)
	}
	if st.Ending {
		text += "; no more come, readers take what is there"
	}
	return text
}

func dataText(st sst.Stat, r *rates) string {
	text := byteText(float64(st.Written)) + " written"
	if r != nil {
		text += ", " + byteText(r.Bytes) + "/s"
	}
	return text
}

// queueText tells what waits, against the limits.
func queueText(st sst.Stat) string {
	text := plural(st.Held, "step")
	if limit := paramOf(st, "QueueLimit"); limit != "" && limit != "0" {
		text = fmt.Sprintf("%d of %s steps", st.Held, limit)
	}
	text += ", " + byteText(float64(st.Queued))
	if limit := paramOf(st, "QueueLimitBytes"); limit != "" && limit != "0" {
		text += " of " + limit
	}
	if policy := paramOf(st, "QueueFullPolicy"); policy != "" {
		text += " (" + policy + ")"
	}
	return text + ", " + byteText(float64(st.Bytes)) + " of memory here"
}

// paramOf returns the value of a parameter of the writer, "" if it told none.
func paramOf(st sst.Stat, name string) string {
	for _, p := range st.Params {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

func readersText(st sst.Stat) string {
	n := len(st.Readers) + st.MoreReaders
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// readerTable has a line for each reader, below one that says what is what.
func readerTable(st sst.Stat) []string {
	if len(st.Readers) == 0 {
		return nil
	}
	rows := [][]string{{"ADDRESS", "RELEASE", "PLANE", "CARRIER", "RANKS", "LAG", "HELD", "BYTES", "SENT", "DROPPED", ""}}
	for _, r := range st.Readers {
		rows = append(rows, []string{
			r.Addr, r.Release, r.Plane, r.Carrier, strconv.Itoa(r.Ranks), strconv.FormatInt(r.Lag, 10), strconv.Itoa(r.Held), byteText(float64(r.HeldBytes)),
			strconv.FormatInt(r.Sent, 10), strconv.FormatInt(r.Dropped, 10), readerState(r),
		})
	}
	lines := alignColumns(rows, 4)
	if st.MoreReaders > 0 {
		lines = append(lines, fmt.Sprintf("  and %s", plural(st.MoreReaders, "more reader")))
	}
	return lines
}

// readerState says what is special about a reader.
func readerState(r sst.AttachedReader) string {
	switch {
	case r.Observer && !r.Active:
		return "observer, opening"
	case r.Observer:
		return "observer"
	case !r.Active:
		return "opening"
	}
	return ""
}

// alignColumns renders a table: the first few columns to the left, the others,
// numbers, to the right, but for the last.
func alignColumns(rows [][]string, left int) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString("  ")
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < left || i == len(row)-1 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// byteText renders a number of bytes with three digits or so.
func byteText(n float64) string {
	const step = 1000
	unit := 0
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	for n >= step && unit < len(units)-1 {
		n /= step
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[unit])
}

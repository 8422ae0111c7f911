package main

import (
	_ "embed" // the page is data
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// pageText is the page around the tables.
//
//go:embed performance.md.tmpl
var pageText string

var page = template.Must(template.New("performance.md").Parse(pageText))

// pageCurve is a curve as the page has it.
type pageCurve struct {
	Title, What, Table, Verdict, Plot string
}

// writeGrowthPage writes the page; plots are in the folder of that name beside it, if there is one.
func writeGrowthPage(w io.Writer, r *growthReport, plots string) error {
	data := struct {
		*growthReport

		Place, Rounds, Idle string
		Item                int
		Power               float64
		List                []pageCurve
	}{growthReport: r, Place: r.Machine.place(), Rounds: count(len(r.Loads), "round"), Idle: idleNote(r.Loads), Item: itemBytes, Power: 1 + tolerance}
	for _, c := range r.Curves {
		p := pageCurve{Title: strings.ToUpper(c.Item[:1]) + c.Item[1:] + "s", What: c.What, Table: c.table(), Verdict: c.verdict()}
		if plots != "" && c.drawn() {
			p.Plot = plots + "/" + c.Name + ".svg"
		}
		data.List = append(data.List, p)
	}
	return page.Execute(w, data)
}

// drawn reports whether there is a plot of the curve.
func (c growthCurve) drawn() bool { return len(c.Points) > 1 }

// table is the curve in numbers.
func (c growthCurve) table() string {
	cells := [][]string{{c.Item + "s", "a step", "min..max", "for each", "ratio to the line above"}}
	ratio := append([]float64{0}, growths(c.Points)...)
	for i, p := range c.Points {
		t := summarize(p.times())
		line := []string{fmt.Sprint(p.N), timeString(t.Median), timeString(t.Min) + ".." + timeString(t.Max), timeString(p.perItem()), ratioString(ratio[i])}
		if i == 0 {
			line[4] = "-"
		}
		cells = append(cells, line)
	}
	return markdown(cells)
}

// timeString shows seconds with three digits, as "12.3 us".
func timeString(s float64) string {
	switch {
	case s < 1e-6:
		return fmt.Sprintf("%.0f ns", s*1e9)
	case s < 1e-3:
		return digits(s*1e6) + " us"
	case s < 1:
		return digits(s*1e3) + " ms"
	}
	return fmt.Sprint(time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond))
}

// writeGrowthDocs writes the page and the plots into the folder of the documentation.
func writeGrowthDocs(docs string, r *growthReport) error {
	const plots = "performance"
	if err := os.MkdirAll(filepath.Join(docs, plots), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	if err := writeGrowthPage(&b, r, plots); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "performance.md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	for _, c := range r.Curves {
		if !c.drawn() {
			continue
		}
		if err := writePlot(filepath.Join(docs, plots, c.Name+".svg"), c); err != nil {
			return err
		}
	}
	return nil
}

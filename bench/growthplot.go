package main

import (
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// writePlot draws a curve: the medians, in logarithmic scales, and a dashed line through the last one that grows
// with n.
func writePlot(file string, c growthCurve) error {
	var medians, linear plotter.XYs
	last := c.Points[len(c.Points)-1]
	for _, p := range c.Points {
		n := float64(p.N)
		medians = append(medians, plotter.XY{X: n, Y: 1e6 * summarize(p.times()).Median})
		linear = append(linear, plotter.XY{X: n, Y: 1e6 * last.perItem() * n})
	}
	line, points, err := plotter.NewLinePoints(medians)
	if err != nil {
		return err
	}
	dashed, err := plotter.NewLine(linear)
	if err != nil {
		return err
	}
	dashed.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = c.Item+"s in a step", "us for a step"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid(), dashed, line, points)
	p.Legend.Add("measured", line, points)
	p.Legend.Add("linear", dashed)
	p.Legend.Top, p.Legend.Left = true, true

	canvas := vgsvg.New(12*vg.Centimeter, 8*vg.Centimeter)
	p.Draw(draw.New(canvas))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

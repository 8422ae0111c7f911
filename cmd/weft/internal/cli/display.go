package cli

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// display shows the progress of the demo on a terminal, and nothing elsewhere.
type display struct {
	progress *mpb.Progress
	bar      *mpb.Bar

	mu      sync.Mutex // the bar draws on a goroutine of its own
	picture picture
}

func newDisplay(env Env, opt demoOptions) *display {
	d := &display{}
	if env.Width == 0 {
		return d
	}
	d.progress = mpb.New(mpb.WithOutput(env.Stdout), mpb.WithWidth(min(env.Width, 64)))
	options := []mpb.BarOption{
		mpb.PrependDecorators(decor.CountersNoUnit("step %d of %d ")),
		mpb.AppendDecorators(decor.Percentage()),
	}
	if env.Width >= pictureWidth+4 {
		options = append(options, mpb.BarTopExtender(mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			_, err := io.WriteString(w, d.picture.render(env.Color))
			return err
		})))
	}
	d.bar = d.progress.AddBar(int64(opt.steps), options...)
	return d
}

func (d *display) step(r report) {
	if d.bar == nil {
		return
	}
	d.mu.Lock()
	d.picture = r.Picture
	d.mu.Unlock()
	d.bar.Increment()
}

// close draws for the last time and ends the goroutines.
func (d *display) close() {
	if d.bar == nil {
		return
	}
	d.bar.Abort(false) // does nothing to a full bar
	d.progress.Wait()
}

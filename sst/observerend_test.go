package sst_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestObserverAtTheEnd: the end of the stream does not wait for an observer. What that has
// not read then it cannot read, and it is told so, which is no failure of the writer. It
// gets to the end of the stream like every reader.
func TestObserverAtTheEnd(t *testing.T) {
	for _, plane := range []string{"native", "evpath"} {
		for _, stays := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the writer's process stays %v", plane, stays), func(t *testing.T) {
				ws := quickSession(t)
				name := streamName(t)
				x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
				o := attach(t, name, sst.ReaderConfig{Observer: true, Params: sst.Params{DataTransport: plane, SpeculativePreloadMode: "Off"}})
				attachedBy(t, x.w, plane)
				x.must(t)
				st, err := o.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := next(t, "Close", async(x.w.Close)); err != nil {
					t.Error(err)
				}
				if !stays {
					ws.Close()
				}
				_, err = step.Read[int64](bounded(t), st, "n")
				wants(t, "reading", err, sst.ErrStepGone)
				if errors.Is(err, sst.ErrWriterFailed) {
					t.Errorf("the writer has not failed: %v", err)
				}
				st.End()
				beginEOF(t, o)
			})
		}
	}
}

package sst_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestF88AskedAfterTheEnd is field report F88: what is in the metadata of a step
// can be asked after its end, and is still of that step; data cannot.
func TestF88AskedAfterTheEnd(t *testing.T) {
	const vars, steps = 800, 6
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{Params: sst.Params{StatsLevel: 1}})
	var list []*sst.Variable[int64]
	for i := range vars {
		v, err := sst.Define[int64](w, fmt.Sprintf("a variable with a long name %04d", i), step.GlobalArray(4))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	r := attach(t, name, sst.ReaderConfig{})
	writing := async(func() error {
		defer w.Close()
		for n := range int64(steps) {
			st, err := w.BeginStep(bounded(t))
			if err != nil {
				return err
			}
			for i, v := range list {
				if err := v.Put(st, step.Box{Count: []uint64{4}}, []int64{n, n + int64(i), n - 1, n}); err != nil {
					return err
				}
			}
			if err := st.End(bounded(t)); err != nil {
				return err
			}
		}
		return nil
	})
	var kept []*step.Step
	var said []string
	for st, err := range r.Steps(bounded(t)) {
		if err != nil {
			t.Fatal(err)
		}
		kept, said = append(kept, st), append(said, describe(st))
		if st.MetadataBytes() < 1<<16 {
			t.Fatalf("%d bytes of metadata show nothing", st.MetadataBytes())
		}
	}
	if err := next(t, "the writer", writing); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for n, st := range kept {
		if got := describe(st); got != said[n] {
			t.Errorf("step %d says something else after its end: %.200s, and not %.200s", st.Number(), got, said[n])
		}
		v, err := step.Lookup[int64](st, st.Variables()[0].Name())
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Get(context.Background(), step.All, nil)
		wants(t, "Get after the end", err, step.ErrStepEnded)
	}
	if len(said) < 2 || slices.Equal(said[:1], said[1:2]) {
		t.Errorf("%d steps that do not differ show nothing", len(said))
	}
}

// describe says all that the metadata of a step say.
func describe(st *step.Step) string {
	var text strings.Builder
	for _, v := range st.Variables() {
		lo, hi, ok := v.Bounds()
		fmt.Fprintln(&text, v.Name(), v.Shape(), v.NumBlocks(), v.Blocks(), lo, hi, ok)
	}
	return text.String()
}

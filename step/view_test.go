package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

func TestView(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	op := array[int32]("op", dims{2}, blockOf[int32](dims{0}, dims{2}, 1, 2).null())
	op.desc.Operator = true
	metas, data := s.records([][]put{
		{
			array[int32]("x", dims{4, 4}, blockOf(dims{0, 0}, dims{2, 4}, seq[int32](0, 8)...), blockOf(dims{2, 0}, dims{2, 2}, seq[int32](100, 4)...)),
			array[int32]("over", dims{4}, blockOf(dims{0}, dims{4}, seq[int32](0, 4)...), blockOf(dims{1}, dims{2}, seq[int32](50, 2)...)),
			local[int32]("l", blockOf(nil, dims{2, 3}, seq[int32](7, 6)...)), op, value("v", bp5.GlobalValue, int32(3)),
		},
	})
	// Aligned memory, whatever the runtime gives for a []byte.
	words := make([]uint64, (len(data[0])+7)/8)
	mem := shmem.Bytes(words)
	copy(mem, data[0])
	src := &viewSource{memSource: &memSource{data: [][]byte{mem}}}
	st, err := s.dec.Step(0, metas, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	var missing uint64
	for _, tc := range []struct {
		name string
		sel  Selector
		want []int32
		why  string
	}{
		{"x", Box{dims{0, 0}, dims{2, 4}}, seq[int32](0, 8), ""},
		{"x", Box{dims{1, 0}, dims{1, 4}}, seq[int32](4, 4), ""},
		{"x", Box{dims{1, 1}, dims{1, 2}}, seq[int32](5, 2), ""},
		{"x", Box{dims{2, 0}, dims{2, 2}}, seq[int32](100, 4), ""},
		{"x", BlockIndex(1), seq[int32](100, 4), ""},
		{"x", Selection{Block: ptr(0), Box: Box{dims{1, 2}, dims{1, 2}}, Missing: &missing}, seq[int32](6, 2), ""},
		{"l", BlockIndex(0), seq[int32](7, 6), ""},
		{"over", Box{dims{1}, dims{2}}, seq[int32](50, 2), ""},
		{"over", Box{dims{3}, dims{1}}, seq[int32](3, 1), ""},
		{"x", Box{dims{3, 3}, dims{1, 0}}, nil, ""},
		{"over", All, nil, "blocks"},
		{"x", Box{dims{0, 0}, dims{2, 2}}, nil, "not contiguous"},
		{"x", Box{dims{2, 2}, dims{1, 2}}, nil, "no block"},
		{"x", Box{dims{2, 1}, dims{1, 2}}, nil, "partly"},
		{"x", Selection{Box: Box{dims{0, 0}, dims{1, 4}}, Memory: &Memory{dims{3, 4}, dims{1, 0}}}, nil, "memory"},
		{"op", All, nil, "operator"},
		{"v", All, nil, "metadata"},
	} {
		v, err := lookup[int32](t, st, tc.name).View(t.Context(), tc.sel)
		if tc.why != "" {
			if !errors.Is(err, ErrNoView) || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("%s %v: %v, want a reason with %q", tc.name, tc.sel, err, tc.why)
			}
			continue
		}
		if err != nil || !slices.Equal(v.Data(), tc.want) {
			t.Errorf("%s %v: %v, %v", tc.name, tc.sel, v.Data(), err)
			continue
		}
		if len(tc.want) > 0 && src.open != 1 {
			t.Errorf("%d views are open", src.open)
		}
		v.Release()
	}
	if src.open != 0 || src.calls != 0 {
		t.Errorf("%d views open, %d reads", src.open, src.calls)
	}
	v, err := lookup[int32](t, st, "l").View(t.Context(), BlockIndex(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.End(); err != nil || v.Data()[5] != 12 {
		t.Errorf("view after End: %v", err)
	}
	v.Release()
}

func TestViewNeedsAlignment(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	metas, data := s.records([][]put{{array[float64]("x", dims{2}, blockOf(dims{0}, dims{2}, 1.0, 2))}})
	mem := shmem.Bytes(make([]uint64, len(data[0])/8+1))[1:]
	copy(mem, data[0])
	src := &viewSource{memSource: &memSource{data: [][]byte{mem}}}
	st, err := s.dec.Step(0, metas, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookup[float64](t, st, "x").View(t.Context(), All); !errors.Is(err, ErrNoView) || src.open != 0 {
		t.Errorf("%v, %d open", err, src.open)
	}
	if _, err := lookup[float64](t, s.step(1, []put{array[float64]("x", dims{2}, blockOf(dims{0}, dims{2}, 1.0, 2))}), "x").View(context.Background(), All); !errors.Is(err, ErrNoView) {
		t.Errorf("source without views: %v", err)
	}
}

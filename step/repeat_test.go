package step

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// changing is what may change from one step of TestRepeatedSteps to the next.
type changing struct {
	value, size int // of the value, and of the array
	text        string
	seldom      bool // one more variable is put
	lead        int  // elements before the array: where it lies
	ranks       int
	silent      bool // rank 0 has no record
}

// puts are those of one rank, for which the record says who it is and which step it is.
func (c changing) puts(rank int) []put {
	n := c.size
	list := []put{
		value("time", bp5.GlobalValue, int64(c.value)),
		value("rank", bp5.LocalValue, int32(c.value+rank)),
		local[float64]("lead", blockOf(nil, dims{uint64(c.lead)}, seq[float64](1, c.lead)...)),
		array[float64]("array", dims{uint64(n * c.ranks)}, blockOf(dims{uint64(n * rank)}, dims{uint64(n)}, seq[float64](100*rank, n)...)),
		value("text", bp5.GlobalValue, c.text),
	}
	if c.seldom {
		list = append(list, value("about", bp5.GlobalValue, int64(c.value)))
	}
	return list
}

// TestRepeatedSteps: a decoder that has seen other steps makes the same of a step as one that has not,
// whatever has changed since the last one.
func TestRepeatedSteps(t *testing.T) {
	rng := testutil.Rand(t)
	s := newSynth(t, DecoderConfig{})
	c := changing{size: 3, text: "one", ranks: 2}
	shared := 0
	for number := range uint64(testutil.Count(t, 300, 3000)) {
		switch rng.IntN(12) {
		case 0:
			c.size = 1 + rng.IntN(4)
		case 1:
			c.lead = rng.IntN(3)
		case 2:
			c.seldom = !c.seldom
		case 3:
			c.text = []string{"one", "two", "three"}[rng.IntN(3)]
		case 4:
			c.ranks = 1 + rng.IntN(3)
		case 5:
			c.silent = !c.silent
		}
		c.value++
		var ranks [][]put
		for rank := range c.ranks {
			ranks = append(ranks, c.puts(rank))
		}
		if c.silent && c.ranks > 1 {
			ranks[0] = nil
		}
		metas, data := s.records(ranks)
		before := s.dec.last
		var dumps []string
		for _, dec := range []*Decoder{s.dec, freshLike(s.dec)} {
			st, err := dec.Step(number, metas, &memSource{data: data}, nil)
			if err != nil {
				t.Fatal(err)
			}
			dumps = append(dumps, dump(t, []*Step{st})+blockList(st))
			for i, v := range st.Variables() {
				if w, ok := st.Variable(v.Name()); !ok || w != v {
					t.Fatalf("step %d: variable %d is not found by its name", number, i)
				}
			}
			if v, ok := st.Variable("absent"); ok || v != nil {
				t.Fatal("a variable that is not there is found")
			}
		}
		if dumps[0] != dumps[1] {
			t.Fatalf("step %d, %+v: got\n%s\nwant\n%s", number, c, dumps[0], dumps[1])
		}
		if len(before.entries) > 0 && len(s.dec.last.entries) > 0 && &before.entries[0] == &s.dec.last.entries[0] {
			shared++
		}
	}
	if shared < 50 {
		t.Errorf("only %d steps repeat the one before", shared)
	}
}

// freshLike returns a decoder that has the formats of another one, and has seen no step.
func freshLike(d *Decoder) *Decoder {
	n := NewDecoder(d.cfg)
	for id, f := range d.formats {
		n.formats[id] = &format{ffs: f.ffs}
	}
	return n
}

// blockList says where the blocks of all variables are.
func blockList(st *Step) (text string) {
	for _, v := range st.Variables() {
		text += fmt.Sprintf("%s %v %v %v %v\n", v.Name(), v.Shape(), v.Ranks(), v.Err(), v.Blocks())
		if l, err := v.layout(); err == nil {
			text += fmt.Sprintf("%+v\n", l.blocks)
		}
	}
	return text
}

// TestRepeatedStepsAtOnce uses steps that share their layouts in several goroutines.
func TestRepeatedStepsAtOnce(t *testing.T) {
	s, metas, data := manyVariables(t, 50, 2)
	var all sync.WaitGroup
	for number := range uint64(8) {
		st, err := s.dec.Step(number, metas, &memSource{data: data}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			all.Go(func() {
				for k := range 50 {
					v, err := Lookup[float64](st, fmt.Sprintf("v%05d", k))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := v.Get(t.Context(), nil, nil)
					if err != nil || got[0] != float64(k) {
						t.Errorf("step %d, variable %d: %v, %v", st.Number(), k, got, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestRepeatedAfterBadRecord: a step that could not be made is no step to be like.
func TestRepeatedAfterBadRecord(t *testing.T) {
	s, metas, data := manyVariables(t, 10, 2)
	for number := range uint64(6) {
		given := slices.Clone(metas)
		if number%2 == 1 {
			given[1] = given[1][:len(given[1])-1]
		}
		st, err := s.dec.Step(number, given, &memSource{data: data}, nil)
		if (err != nil) != (number%2 == 1) {
			t.Fatalf("step %d: %v", number, err)
		}
		if err != nil {
			continue
		}
		if _, err := Lookup[float64](st, "v00003"); err != nil {
			t.Error(err)
		}
		if _, err := Lookup[float64](st, "v3"); !errors.Is(err, ErrNoVariable) {
			t.Error(err)
		}
	}
}

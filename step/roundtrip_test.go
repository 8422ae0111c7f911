package step_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/step"
)

// stores is a Source over the block stores of the writer ranks.
type stores []*step.HeapStore

func (s stores) Read(_ context.Context, pieces []step.Piece) error {
	for _, p := range pieces {
		parts, err := s[p.Rank].Slices(p.Offset, uint64(len(p.Dst)))
		if err != nil {
			return err
		}
		at := 0
		for _, b := range parts {
			at += copy(p.Dst[at:], b)
		}
		if at != len(p.Dst) {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// hole fills destinations in front of a read: it must stay where no block is.
const hole = 0xee

// variable is one variable of the model. Dimensions are those that the reader
// sees; a column-major writer has them reversed.
type variable struct {
	name  string
	typ   step.Type
	st    *step.StructType
	kind  step.Kind
	inner []uint64 // dimensions but the first, along which blocks are laid
	size  int      // of an element
}

// world is a stream of some writer ranks and its reader.
type world struct {
	t      *rapid.T
	rng    *rand.Rand
	cfg    step.EncoderConfig
	pool   *step.HeapPool
	stores stores
	encs   []*step.Encoder
	dec    *step.Decoder
	vars   []*variable
	attrs  map[string]any
}

// check is what the model expects of one variable in one step.
type check struct {
	v      *variable
	shape  []uint64
	whole  []byte   // of a global or joined array
	blocks [][]byte // of all kinds, in the order of ranks and puts
	ranks  []int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, pool: step.NewHeapPool(0), attrs: map[string]any{}}
	w.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	w.cfg = step.EncoderConfig{
		ColumnMajor:   rapid.Bool().Draw(t, "columnMajor"),
		Stats:         rapid.Bool().Draw(t, "stats"),
		OldAttributes: rapid.Bool().Draw(t, "oldAttributes"),
	}
	for range rapid.IntRange(1, 3).Draw(t, "ranks") {
		w.encs = append(w.encs, step.NewEncoder(w.cfg))
		w.stores = append(w.stores, w.pool.NewStore())
	}
	w.dec = step.NewDecoder(step.DecoderConfig{ColumnMajor: w.cfg.ColumnMajor})
	for i := range rapid.IntRange(1, 8).Draw(t, "variables") {
		w.vars = append(w.vars, w.drawVariable(i))
	}
	return w
}

func (w *world) drawVariable(i int) *variable {
	v := &variable{
		name: fmt.Sprint([]string{"v", "a/b", "1_2_", "with space ", "été", "_"}[i%6], i),
		kind: rapid.SampledFrom([]step.Kind{step.GlobalValueKind, step.LocalValueKind, step.GlobalArrayKind, step.LocalArrayKind, step.JoinedArrayKind}).Draw(w.t, "kind"),
	}
	types := []step.Type{step.Int8, step.Int16, step.Int32, step.Int64, step.Uint8, step.Uint16, step.Uint32, step.Uint64,
		step.Float32, step.Float64, step.LongDouble, step.Complex64, step.Complex128, step.CharType}
	if v.kind.IsValue() {
		types = append(types[:len(types)-1], step.String) // a char value comes back as int8
	} else {
		types = append(types, step.Struct)
		for range rapid.IntRange(0, 3).Draw(w.t, "inner dimensions") {
			v.inner = append(v.inner, rapid.Uint64Range(1, 5).Draw(w.t, "extent"))
		}
	}
	v.typ = rapid.SampledFrom(types).Draw(w.t, "type")
	v.size = v.typ.Size()
	if v.typ == step.Struct {
		v.size = rapid.SampledFrom([]int{5, 8, 12, 32}).Draw(w.t, "struct size")
		v.st = &step.StructType{Name: fmt.Sprint("struct", v.size), Size: v.size, Fields: []step.StructField{{Name: "a", Type: step.Uint8, Offset: 1, Count: 4}}}
	}
	return v
}

// dims puts the writer's order on dimensions that are the reader's.
func (w *world) dims(d ...uint64) []uint64 {
	d = slices.Clone(d)
	if w.cfg.ColumnMajor {
		slices.Reverse(d)
	}
	return d
}

// definition returns rank's definition of v, made now if it is new.
func (w *world) definition(rank int, v *variable, first uint64) *step.Definition {
	e := w.encs[rank]
	full := w.dims(append([]uint64{first}, v.inner...)...)
	d := e.Definition(v.name)
	if d == nil {
		shape := step.Shape{Kind: v.kind}
		switch v.kind {
		case step.GlobalArrayKind, step.JoinedArrayKind:
			shape.Dims = full
		case step.LocalArrayKind:
			shape = step.LocalArray(len(full))
		}
		var err error
		if v.st != nil {
			d, err = e.DefineStruct(v.name, v.st, shape)
		} else {
			d, err = e.Define(v.name, v.typ, shape)
		}
		w.must(err)
	} else if v.kind == step.GlobalArrayKind {
		w.must(d.SetShape(full...))
	}
	return d
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

// put adds one block to rank's step, by a copy or by a span.
func (w *world) put(rank int, d *step.Definition, box step.Box, data []byte) func() {
	if w.rng.IntN(2) == 0 {
		own := bytes.Clone(data)
		w.must(w.encs[rank].Put(d, box, own))
		clear(own) // Put has copied
		return func() {}
	}
	mem, err := w.encs[rank].Span(d, box)
	w.must(err)
	if len(mem) != len(data) {
		w.t.Fatalf("span of %d bytes, want %d", len(mem), len(data))
	}
	return func() { copy(mem, data) }
}

// write makes one step of all ranks and returns what the reader must see.
func (w *world) write() ([]check, [][]byte) {
	for r, e := range w.encs {
		w.stores[r].Reset()
		w.must(e.Begin(w.stores[r]))
	}
	var checks []check
	var fill []func()
	for _, v := range w.vars {
		if w.rng.IntN(4) == 0 {
			continue // not in this step
		}
		c := check{v: v}
		if v.kind.IsValue() {
			w.writeValues(&c)
		} else {
			fill = append(fill, w.writeArray(&c)...)
		}
		if len(c.ranks) > 0 {
			checks = append(checks, c)
		}
	}
	w.rng.Shuffle(len(fill), func(i, k int) { fill[i], fill[k] = fill[k], fill[i] })
	for _, f := range fill {
		f()
	}
	w.changeAttributes()
	return checks, w.end()
}

func (w *world) writeValues(c *check) {
	for rank := range w.encs {
		d := w.definition(rank, c.v, 0)
		if w.rng.IntN(3) == 0 {
			continue
		}
		c.ranks = append(c.ranks, rank)
		for range 1 + w.rng.IntN(2) { // the last one counts
			data := w.bytes(c.v.size)
			if c.v.typ == step.String {
				data = bytes.ReplaceAll(w.bytes(w.rng.IntN(20)), []byte{0}, []byte{'x'})
				w.must(w.encs[rank].PutText(d, string(data)))
			} else {
				w.must(w.encs[rank].Put(d, step.All, data))
			}
			c.blocks = append(c.blocks[:len(c.ranks)-1], data)
		}
	}
}

// writeArray lays blocks of random length along the first dimension, some of
// which are left out.
func (w *world) writeArray(c *check) (fill []func()) {
	v := c.v
	row := v.size
	for _, n := range v.inner {
		row *= int(n)
	}
	type part struct {
		rank  int
		start uint64
		n     uint64
		put   bool
	}
	var parts []part
	total := uint64(0)
	for rank := range w.encs {
		for range w.rng.IntN(4) {
			p := part{rank: rank, start: total, n: uint64(w.rng.IntN(4)), put: w.rng.IntN(5) > 0}
			if w.rng.IntN(20) == 0 {
				p.n = 3000 // larger than a segment of the store, sometimes
			}
			parts = append(parts, p)
			if p.put || v.kind == step.GlobalArrayKind {
				total += p.n
			}
		}
	}
	first := total
	if v.kind == step.JoinedArrayKind {
		first = step.JoinedDim
	}
	c.whole = bytes.Repeat([]byte{hole}, int(total)*row)
	c.shape = append([]uint64{total}, v.inner...)
	at := 0 // in a joined array
	for _, p := range parts {
		if !p.put {
			continue
		}
		d := w.definition(p.rank, v, first)
		data := w.bytes(int(p.n) * row)
		box := step.Box{Count: w.dims(append([]uint64{p.n}, v.inner...)...)}
		switch v.kind {
		case step.GlobalArrayKind:
			box.Start = w.dims(append([]uint64{p.start}, make([]uint64, len(v.inner))...)...)
			copy(c.whole[int(p.start)*row:], data)
		case step.JoinedArrayKind:
			at += copy(c.whole[at:], data)
		}
		fill = append(fill, w.put(p.rank, d, box, data))
		c.blocks, c.ranks = append(c.blocks, data), append(c.ranks, p.rank)
	}
	return fill
}

func (w *world) changeAttributes() {
	set := func(name string, value any, a step.AttributeDef) {
		w.must(w.encs[0].SetAttribute(a)) // rank 0's are all
		w.attrs[name] = value
	}
	if w.rng.IntN(2) == 0 {
		n := w.rng.Int32N(3)
		set("n", n, step.NewAttribute("n", n))
	}
	if w.rng.IntN(2) == 0 {
		s := strings.Repeat("s", w.rng.IntN(3))
		set("v/s", s, step.NewAttribute("v/s", s))
	}
	if w.rng.IntN(2) == 0 {
		list := make([]complex128, w.rng.IntN(3))
		set("list", list, step.NewAttributeArray("list", list))
	}
	if w.rng.IntN(2) == 0 && !w.cfg.OldAttributes {
		list := slices.Repeat([]string{"x", ""}, w.rng.IntN(2))
		set("strings", list, step.NewAttributeArray("strings", list))
	}
}

// end ends the step on all ranks, and gives the reader the formats and the
// attributes.
func (w *world) end() (metas [][]byte) {
	for r, e := range w.encs {
		out, err := e.End()
		w.must(err)
		for _, f := range out.Formats {
			w.must(w.dec.AddFormat(f.ID, f.Body))
		}
		if r == 0 && len(out.Attributes) > 0 {
			w.must(w.dec.AddAttributes(out.Attributes))
		}
		if out.DataSize != w.stores[r].Size() || out.DataSize%16 != 0 {
			w.t.Fatalf("rank %d: %d bytes of data, store has %d", r, out.DataSize, w.stores[r].Size())
		}
		metas = append(metas, out.Metadata)
	}
	return metas
}

// verify compares what the reader sees with the model.
func (w *world) verify(st *step.Step, checks []check) {
	if got := len(st.Variables()); got != len(checks) {
		w.t.Fatalf("%d variables, want %d", got, len(checks))
	}
	for _, c := range checks {
		v, ok := st.Variable(c.v.name)
		if !ok {
			w.t.Fatalf("no variable %q", c.v.name)
		}
		if err := w.verifyVariable(v, c); err != nil {
			w.t.Fatalf("%v of %v, %q: %v", v.Kind(), v.Type(), c.v.name, err)
		}
	}
	if got := len(st.Attributes()); got != len(w.attrs) {
		w.t.Fatalf("%d attributes, want %d", got, len(w.attrs))
	}
	for name, want := range w.attrs {
		a, ok := st.Attribute(name)
		if !ok {
			w.t.Fatalf("no attribute %q", name)
		}
		if diff := cmp.Diff(want, a.Value()); diff != "" && a.Len() > 0 {
			w.t.Fatalf("attribute %q: %s", name, diff)
		}
	}
}

func (w *world) verifyVariable(v *step.Variable, c check) error {
	if v.Type() != c.v.typ || v.Kind() != c.v.kind || v.ElemSize() != c.v.size {
		return fmt.Errorf("comes back as %v of %v, %d bytes", v.Kind(), v.Type(), v.ElemSize())
	}
	if c.v.kind == step.GlobalValueKind {
		c.blocks, c.ranks = c.blocks[:1], c.ranks[:1] // the first rank's counts
	}
	if v.NumBlocks() != len(c.blocks) {
		return fmt.Errorf("%d blocks, want %d", v.NumBlocks(), len(c.blocks))
	}
	if c.v.kind.IsValue() {
		return verifyValues(v, c)
	}
	for i, want := range c.blocks {
		if b := v.Block(i); b.Rank != c.ranks[i] || (b.Stats.Bytes() != nil) != (w.cfg.Stats && c.v.typ.Ordered()) {
			return fmt.Errorf("block %d is of rank %d with %d bytes of statistics, want rank %d", i, b.Rank, len(b.Stats.Bytes()), c.ranks[i])
		}
		got := make([]byte, len(want))
		if err := v.Read(context.Background(), step.BlockIndex(i), got); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("block %d differs", i)
		}
	}
	if c.v.kind == step.LocalArrayKind {
		return nil
	}
	if !slices.Equal(v.Shape(), c.shape) {
		return fmt.Errorf("shape %v, want %v", v.Shape(), c.shape)
	}
	got := bytes.Repeat([]byte{hole}, len(c.whole))
	if err := v.Read(context.Background(), step.All, got); err != nil {
		return err
	}
	if !bytes.Equal(got, c.whole) {
		return errors.New("the whole array differs")
	}
	return nil
}

func verifyValues(v *step.Variable, c check) error {
	for i, want := range c.blocks {
		if c.v.typ == step.String {
			got, err := v.Any(context.Background(), step.BlockIndex(i))
			if s, ok := got.([]string); ok && len(s) == 1 {
				got = s[0]
			}
			if err != nil || got != string(want) {
				return fmt.Errorf("rank %d: %q, want %q, %w", c.ranks[i], got, want, err)
			}
			continue
		}
		got := make([]byte, len(want))
		if err := v.Read(context.Background(), step.BlockIndex(i), got); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("rank %d: %x, want %x, %w", c.ranks[i], got, want, err)
		}
	}
	return nil
}

// What an Encoder writes, a Decoder reads: all types, kinds and shapes, puts and
// spans, several ranks and steps, on recycled memory.
func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for number := range uint64(rapid.IntRange(1, 4).Draw(t, "steps")) {
			checks, metas := w.write()
			st, err := w.dec.Step(number, metas, w.stores, nil)
			w.must(err)
			w.verify(st, checks)
			w.must(st.End())
		}
	})
}

// A reader that joins late gets along with Formats and AttributesNow.
func TestLateReader(t *testing.T) {
	e := step.NewEncoder(step.EncoderConfig{})
	store := stores{new(step.HeapStore)}
	a, err := e.Define("a", step.Int32, step.GlobalArray(2))
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Define("b", step.String, step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetAttribute(step.NewAttribute("unit", "m")); err != nil {
		t.Fatal(err)
	}
	var last step.Output
	for i := range int32(3) {
		store[0].Reset()
		err := errors.Join(e.Begin(store[0]), step.PutSlice(e, a, step.All, []int32{i, -i}))
		if i > 0 {
			err = errors.Join(err, e.PutText(b, fmt.Sprint("step ", i)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if last, err = e.End(); err != nil {
			t.Fatal(err)
		}
	}
	if len(last.Formats) != 0 || len(last.Attributes) != 0 {
		t.Errorf("the last step has %d formats and %d bytes of attributes", len(last.Formats), len(last.Attributes))
	}
	d := step.NewDecoder(step.DecoderConfig{})
	for _, f := range e.Formats() {
		if err := d.AddFormat(f.ID, f.Body); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.AddAttributes(e.AttributesNow()); err != nil {
		t.Fatal(err)
	}
	st, err := d.Step(2, [][]byte{last.Metadata}, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := step.Lookup[int32](st, "a")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Get(t.Context(), step.All, nil); err != nil || !slices.Equal(got, []int32{2, -2}) {
		t.Errorf("a = %v, %v", got, err)
	}
	s, err := step.Lookup[string](st, "b")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Value(t.Context()); err != nil || got != "step 2" {
		t.Errorf("b = %q, %v", got, err)
	}
	if unit, ok := st.Attribute("unit"); !ok || unit.Value() != "m" {
		t.Errorf("attribute %v", unit)
	}
}

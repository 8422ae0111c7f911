package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weft-fabric/weft/operator"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// copier writes the steps of a source to a stream.
type copier struct {
	w      *sst.Writer
	served *served
	live   bool // the source is a stream: failing reads mean that it is gone
	team   *team
	mine   share // of the ranks, that this process stands for
	stderr io.Writer
	vars   map[string]*pipeVar
	attrs  map[string]string // what was sent, by name
	told   map[string]bool   // complaints, each made once
}

// pipeVar is a variable of the target.
type pipeVar struct {
	def  *sst.Definition
	typ  step.Type
	kind step.Kind
	dims []uint64
}

// step copies one step. Variables that cannot be read are left out; other
// errors end the pipe.
func (c *copier) step(ctx context.Context, st *step.Step) error {
	if c.team.leads() { // they are said once, for all ranks
		if err := c.attributes(st); err != nil {
			return err
		}
	}
	to, err := c.w.BeginStep(ctx)
	if err != nil {
		return err
	}
	for _, v := range st.Variables() {
		err := c.variable(ctx, to, v)
		if err != nil && (ctx.Err() != nil || c.fatal(err)) {
			to.Abort()
			return err
		}
		if err != nil {
			c.complain("variable "+v.Name(), fmt.Errorf("left out: %w", err))
		}
	}
	return to.End(ctx)
}

// fatal reports whether err concerns more than one variable.
func (c *copier) fatal(err error) bool {
	if _, ok := errors.AsType[*shareError](err); ok {
		return true
	}
	if !c.live {
		return errors.Is(err, sst.ErrClosed)
	}
	for _, local := range []error{
		step.ErrUnreadable, step.ErrMetadata, step.ErrNotStored, step.ErrTooLarge, step.ErrSelection, step.ErrType,
		step.ErrDefinition, operator.ErrUnsupported, operator.ErrCorrupt, errLeftOut,
	} {
		if errors.Is(err, local) {
			return false
		}
	}
	return true
}

// complain tells of something that is left out. In a team every rank finds the
// same, and one says it.
func (c *copier) complain(what string, err error) {
	told := c.told[what]
	c.told[what] = true
	if !told && c.team.leads() {
		fmt.Fprintf(c.stderr, "weft: %s: %s\n", what, message(err))
	}
}

// block is one block that was read.
type block struct {
	rank int
	box  step.Box
	data []byte
	text string
}

// variable copies one variable: all blocks that are ours, or none.
func (c *copier) variable(ctx context.Context, to *sst.WriterStep, v *step.Variable) error {
	if err := v.Err(); err != nil {
		return err
	}
	if c.team.alone() { // what cannot be read is not defined
		blocks, err := c.readBlocks(ctx, v)
		if err != nil {
			return err
		}
		def, err := c.define(v)
		if err != nil {
			return err
		}
		return put(to, v, def, blocks)
	}
	def, err := c.define(v)
	if err != nil {
		return err // on every rank alike
	}
	blocks, err := c.readBlocks(ctx, v)
	if err == nil {
		err = put(to, v, def, blocks)
	}
	if err != nil {
		return &shareError{v.Name(), err}
	}
	return nil
}

// shareError is an error with the blocks of one rank. The other ranks do not
// know of it, so the variable cannot be left out.
type shareError struct {
	name string
	err  error
}

func (e *shareError) Error() string { return "variable " + e.name + ": " + e.err.Error() }
func (e *shareError) Unwrap() error { return e.err }

func put(to *sst.WriterStep, v *step.Variable, def *sst.Definition, blocks []block) (err error) {
	for _, b := range blocks {
		if v.Type() == step.String {
			err = to.Rank(b.rank).PutText(def, b.text)
		} else {
			err = to.Rank(b.rank).PutBytes(def, b.box, b.data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readBlocks reads the blocks that this process stands for.
func (c *copier) readBlocks(ctx context.Context, v *step.Variable) ([]block, error) {
	var list []block
	for _, blk := range v.Blocks() {
		if !c.team.alone() && (blk.Rank < c.mine.lo || blk.Rank >= c.mine.hi) {
			continue
		}
		sel, box, ok := clip(v, blk)
		if !ok {
			continue
		}
		b := block{rank: blk.Rank - c.mine.lo, box: blockBox(v.Kind(), box)}
		if err := b.read(ctx, v, sel, box); err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		list = append(list, b)
	}
	return list, nil
}

func (b *block) read(ctx context.Context, v *step.Variable, sel step.Selection, box step.Box) error {
	if v.Type() == step.String {
		text, err := v.Any(ctx, sel)
		if s, ok := text.([]string); ok && len(s) == 1 {
			b.text = s[0]
		}
		return err
	}
	n, err := box.Elements()
	if err != nil {
		return err
	}
	b.data = make([]byte, n*v.ElemSize())
	return v.Read(ctx, sel, b.data)
}

// clip returns what of a block lies in its array, as a selection of the block
// and as a box of the array. Only blocks of flattened files are not all in it:
// their arrays keep the shape of the first step.
func clip(v *step.Variable, blk step.Block) (sel step.Selection, box step.Box, ok bool) {
	sel.Block = &blk.Index
	if v.Kind() != step.GlobalArrayKind || blk.Box.Within(v.Shape()) == nil {
		return sel, blk.Box, true
	}
	box, ok = blk.Box.Intersect(step.Box{Count: v.Shape()})
	if !ok {
		return sel, box, false
	}
	sel.Box = step.Box{Start: make([]uint64, len(box.Start)), Count: box.Count}
	for d := range box.Start {
		sel.Box.Start[d] = box.Start[d] - blk.Box.Start[d]
	}
	return sel, box, true
}

// blockBox is a block's box as a writer puts it: where a block lies is only
// said for global arrays.
func blockBox(kind step.Kind, box step.Box) step.Box {
	switch kind {
	case step.GlobalArrayKind:
		return box
	case step.LocalArrayKind, step.JoinedArrayKind:
		return step.Box{Count: box.Count}
	}
	return step.Box{}
}

// errLeftOut says that a variable changed in a way that a stream does not allow.
var errLeftOut = errors.New("it changed in a way that streams do not allow")

// define returns the target's variable, with the shape that v has now.
func (c *copier) define(v *step.Variable) (*sst.Definition, error) {
	shape := v.DeclaredShape()
	known := c.vars[v.Name()]
	if known == nil {
		def, err := c.w.DefineUntyped(v.Name(), v.Type(), v.StructType(), shape)
		if err != nil {
			return nil, err
		}
		c.vars[v.Name()] = &pipeVar{def: def, typ: v.Type(), kind: v.Kind(), dims: slices.Clone(shape.Dims)}
		return def, nil
	}
	if known.typ != v.Type() || known.kind != v.Kind() || len(known.dims) != len(shape.Dims) {
		return nil, fmt.Errorf("%v %v of %d dimensions, was %v %v of %d: %w",
			v.Type(), v.Kind(), len(shape.Dims), known.typ, known.kind, len(known.dims), errLeftOut)
	}
	sized := known.kind == step.GlobalArrayKind || known.kind == step.JoinedArrayKind
	if sized && !slices.Equal(known.dims, shape.Dims) {
		if err := known.def.SetShape(shape.Dims...); err != nil {
			return nil, err
		}
		known.dims = slices.Clone(shape.Dims)
	}
	return known.def, nil
}

// attributes sends the attributes that are new or have changed.
func (c *copier) attributes(st *step.Step) error {
	for _, a := range st.Attributes() {
		now := string(appendAny(nil, a.Value(), jsonStyle, ","))
		if old, sent := c.attrs[a.Name()]; sent && old == now {
			continue
		}
		c.attrs[a.Name()] = now
		err := c.w.SetAttribute(attributeDef(a))
		if errors.Is(err, sst.ErrClosed) {
			return err
		}
		if err != nil {
			c.complain("attribute "+a.Name(), fmt.Errorf("left out: %w", err))
		}
	}
	return nil
}

func attributeDef(a *step.Attribute) step.AttributeDef {
	switch {
	case a.Type() != step.String:
		return step.RawAttribute(a.Name(), a.Type(), a.IsArray(), a.Bytes())
	case a.IsArray():
		return step.NewAttributeArray(a.Name(), a.Strings())
	}
	return step.NewAttribute(a.Name(), a.Strings()[0])
}

// run copies steps until the source ends, or so many of them if that is not
// negative.
func (c *copier) run(ctx context.Context, src source, steps int) error {
	for n := 0; steps < 0 || n < steps; n++ {
		st, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		err = c.step(ctx, st)
		if err == nil && c.team.leads() {
			c.served.sent()
		}
		if err := errors.Join(err, st.End()); err != nil {
			return err
		}
	}
	return nil
}

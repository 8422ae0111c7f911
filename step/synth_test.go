package step

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// put is one variable of one rank in a synthetic step.
type put struct {
	desc   bp5.VarDesc
	value  []byte
	text   string
	meta   *bp5.ArrayMeta // given as it is, or made of shape and blocks
	shape  []uint64
	blocks []synthBlock
}

type synthBlock struct {
	start, count []uint64
	data         []byte // as stored
}

// synth makes steps from puts, and keeps the ranks' data.
type synth struct {
	t    testing.TB
	dec  *Decoder
	data *memSource
}

func newSynth(t testing.TB, cfg DecoderConfig) *synth {
	return &synth{t: t, dec: NewDecoder(cfg), data: &memSource{}}
}

// step makes a step; ranks[r] is what rank r puts, nil for a rank without a record.
func (s *synth) step(number uint64, ranks ...[]put) *Step {
	s.t.Helper()
	metas, data := s.records(ranks)
	s.data = &memSource{data: data}
	st, err := s.dec.Step(number, metas, s.data, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *synth) records(ranks [][]put) (metas, data [][]byte) {
	s.t.Helper()
	metas, data = make([][]byte, len(ranks)), make([][]byte, len(ranks))
	for r, puts := range ranks {
		if puts != nil {
			metas[r], data[r] = s.record(puts)
		}
	}
	return metas, data
}

// record encodes one rank's metadata and data.
func (s *synth) record(puts []put) (meta, data []byte) {
	s.t.Helper()
	enc := bp5.NewMetadataEncoder()
	var err error
	check := func(e error) {
		if err == nil {
			err = e
		}
	}
	for i := range puts {
		_, e := enc.Add(puts[i].desc)
		check(e)
	}
	enc.Begin()
	size := uint64(0)
	for i := range puts {
		p := &puts[i]
		switch {
		case p.desc.Kind.IsArray():
			m := p.meta
			if m == nil {
				m, data = p.layOut(data)
			}
			for b, loc := range m.Location {
				n := uint64(p.desc.ElemSize)
				for _, c := range m.Count[b*m.Dims : (b+1)*m.Dims] {
					n *= c
				}
				if loc != bp5.NoData {
					size = max(size, loc+n)
				}
			}
			check(enc.SetArray(i, m))
		case p.desc.Type == bp5.String:
			check(enc.SetText(i, p.text))
		default:
			check(enc.SetValue(i, p.value))
		}
	}
	meta, e := enc.Append(nil, max(size, uint64(len(data))))
	check(e)
	f, e := enc.Format()
	check(e)
	if err == nil {
		err = s.dec.AddFormat(f.ID(), f.Body())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return meta, data
}

// layOut places the blocks in the rank's data.
func (p *put) layOut(data []byte) (*bp5.ArrayMeta, []byte) {
	m := &bp5.ArrayMeta{Blocks: len(p.blocks), Shape: p.shape, Dims: len(p.shape)}
	for _, b := range p.blocks {
		m.Dims = len(b.count)
		m.Count = append(m.Count, b.count...)
		if p.desc.Kind == bp5.GlobalArray {
			m.Offset = append(m.Offset, b.start...)
		}
		m.Location = append(m.Location, uint64(len(data)))
		if p.desc.Operator {
			m.StoredSize = append(m.StoredSize, uint64(len(b.data)))
		}
		data = append(data, b.data...)
		data = append(data, make([]byte, -len(data)&7)...)
	}
	return m, data
}

// array is a put of a global array.
func array[T Element](name string, shape []uint64, blocks ...synthBlock) put {
	return put{desc: arrayDesc[T](name, bp5.GlobalArray), shape: shape, blocks: blocks}
}

// local is a put of a local array.
func local[T Element](name string, blocks ...synthBlock) put {
	return put{desc: arrayDesc[T](name, bp5.LocalArray), blocks: blocks}
}

func arrayDesc[T Element](name string, kind bp5.Kind) bp5.VarDesc {
	t := TypeOf[T]()
	return bp5.VarDesc{Name: name, Kind: kind, Type: bp5.Type(t), ElemSize: t.Size()}
}

func value[T Element](name string, kind bp5.Kind, v T) put {
	d := arrayDesc[T](name, kind)
	if s, ok := any(v).(string); ok {
		return put{desc: d, text: s}
	}
	return put{desc: d, value: append([]byte(nil), shmem.Bytes([]T{v})...)}
}

func blockOf[T Element](start, count []uint64, elems ...T) synthBlock {
	return synthBlock{start: start, count: count, data: append([]byte(nil), shmem.Bytes(elems)...)}
}

// null wraps the block with operator 127, which stores bytes as they are.
func (b synthBlock) null() synthBlock {
	head := binary.LittleEndian.AppendUint64([]byte{127, 1, 0, 0}, uint64(len(b.data)))
	b.data = append(head, b.data...)
	return b
}

// memSource serves data from memory, and counts. It is a Viewer if views is set
// through viewSource.
type memSource struct {
	data   [][]byte
	mu     sync.Mutex
	calls  int
	pieces []Piece
}

func (m *memSource) Read(ctx context.Context, pieces []Piece) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.pieces = append(m.pieces, pieces...)
	for _, p := range pieces {
		if p.Rank >= len(m.data) || p.Offset+uint64(len(p.Dst)) > uint64(len(m.data[p.Rank])) {
			return fmt.Errorf("rank %d at %d, %d bytes: %w", p.Rank, p.Offset, len(p.Dst), io.ErrUnexpectedEOF)
		}
		copy(p.Dst, m.data[p.Rank][p.Offset:])
	}
	return ctx.Err()
}

func (m *memSource) bytes() int {
	n := 0
	for _, p := range m.pieces {
		n += len(p.Dst)
	}
	return n
}

// viewSource is a memSource that gives views.
type viewSource struct {
	*memSource
	open int
}

func (v *viewSource) View(_ context.Context, rank int, off, n uint64) ([]byte, func(), error) {
	v.open++
	return v.data[rank][off : off+n : off+n], func() { v.open-- }, nil
}

func lookup[T Element](t testing.TB, s *Step, name string) Var[T] {
	t.Helper()
	v, err := Lookup[T](s, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// seq returns n elements from first on.
func seq[T int32 | int64 | float32 | float64](first, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(first + i)
	}
	return list
}

package sst_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// Tests of the native plane: this process looks at memory that it shares with itself, as
// with any other of its node. That the provider is not linked cannot be seen here:
// link_test.go links it for all tests of the package (sst/internal/native says what Open
// answers then).

// zooVar is a variable of the table: what every rank puts, some of it by Put and some
// into a span, and how a reader checks it, by every way to read there is.
type zooVar struct {
	name   string
	define func(w *sst.Writer, ranks int) (put func(st *sst.WriterStep, rank int) error, err error)
	check  func(ctx context.Context, st *step.Step, ranks int) error
}

// Shape of the arrays: zooRows rows for each rank, in two blocks.
const (
	zooRows = 4
	zooCols = 7
)

// number is a type that closed formulas make values of.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func real[T interface {
	number
	step.Element
}](step, i int) T {
	return T((step*13 + i) % 120)
}

func alike[T comparable](what string, got []T, n int, want func(i int) T) error {
	if len(got) != n {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), n)
	}
	for i, x := range got {
		if x != want(i) {
			return fmt.Errorf("%s: element %d is %v, want %v", what, i, x, want(i))
		}
	}
	return nil
}

// array is a global array of one type. Element i of step s is value(s, i).
func array[T step.Element](name string, value func(step, i int) T) zooVar {
	return zooVar{
		name: name,
		define: func(w *sst.Writer, ranks int) (func(*sst.WriterStep, int) error, error) {
			v, err := sst.Define[T](w, name, step.GlobalArray(uint64(ranks*zooRows), zooCols))
			return func(st *sst.WriterStep, rank int) error {
				half := step.Box{Start: []uint64{uint64(rank * zooRows), 0}, Count: []uint64{zooRows / 2, zooCols}}
				data := make([]T, zooRows/2*zooCols)
				first := rank * zooRows * zooCols
				for i := range data {
					data[i] = value(int(st.Number()), first+i)
				}
				if err := v.Put(st, half, data); err != nil {
					return err
				}
				clear(data) // it was copied
				half.Start[0] += zooRows / 2
				span, err := v.Span(st, half)
				for i := range span {
					span[i] = value(int(st.Number()), first+len(data)+i)
				}
				return err
			}, err
		},
		check: func(ctx context.Context, st *step.Step, ranks int) error {
			return checkArray(ctx, st, name, ranks, value)
		},
	}
}

// checkArray reads an array by Get, Fetch and View.
func checkArray[T step.Element](ctx context.Context, st *step.Step, name string, ranks int, value func(step, i int) T) error {
	v, err := step.Lookup[T](st, name)
	if err != nil {
		return err
	}
	rows, number := ranks*zooRows, int(st.Number())
	at := func(row, col int) T { return value(number, row*zooCols+col) }
	whole, err := v.Get(ctx, nil, nil)
	if err := cmp.Or(err, alike("Get", whole, rows*zooCols, func(i int) T { return value(number, i) })); err != nil {
		return err
	}
	column, last := make([]T, rows-2), make([]T, zooCols)
	stripes := make([]T, (rows-2)*3)
	err = st.Fetch(ctx,
		v.Into(step.Box{Start: []uint64{1, 2}, Count: []uint64{uint64(rows - 2), 1}}, column),
		v.Into(step.Box{Start: []uint64{uint64(rows - 1), 0}, Count: []uint64{1, zooCols}}, last),
		v.Into(step.Box{Start: []uint64{1, 3}, Count: []uint64{uint64(rows - 2), 3}}, stripes))
	if err := cmp.Or(err,
		alike("a column", column, rows-2, func(i int) T { return at(i+1, 2) }),
		alike("the last row", last, zooCols, func(i int) T { return at(rows-1, i) }),
		alike("a strided box", stripes, (rows-2)*3, func(i int) T { return at(i/3+1, i%3+3) })); err != nil {
		return err
	}
	for i := range v.Blocks() {
		view, err := v.View(ctx, step.BlockIndex(i))
		if err != nil {
			return fmt.Errorf("view of block %d: %w", i, err)
		}
		err = alike("a view", view.Data(), zooRows/2*zooCols, func(k int) T { return value(number, i*zooRows/2*zooCols+k) })
		view.Release()
		if err != nil {
			return err
		}
	}
	row, err := v.View(ctx, step.Box{Start: []uint64{1, 0}, Count: []uint64{1, zooCols}})
	if err != nil {
		return fmt.Errorf("view of a row: %w", err)
	}
	defer row.Release()
	return alike("a row", row.Data(), zooCols, func(i int) T { return at(1, i) })
}

// blocks is a local array: rank r puts a block of r elements, which is none at rank 0, and
// in odd steps one of two more into a span.
func blocks() zooVar {
	value := func(step, rank, i int) int32 { return int32(step*1000 + rank*100 + i) }
	return zooVar{
		name: "blocks",
		define: func(w *sst.Writer, _ int) (func(*sst.WriterStep, int) error, error) {
			v, err := sst.Define[int32](w, "blocks", step.LocalArray(1))
			return func(st *sst.WriterStep, rank int) error {
				data := make([]int32, rank)
				for i := range data {
					data[i] = value(int(st.Number()), rank, i)
				}
				if err := v.Put(st, step.Box{Count: []uint64{uint64(rank)}}, data); err != nil || st.Number()%2 == 0 {
					return err
				}
				span, err := v.Span(st, step.Box{Count: []uint64{uint64(rank + 2)}})
				for i := range span {
					span[i] = value(int(st.Number()), rank, 50+i)
				}
				return err
			}, err
		},
		check: func(ctx context.Context, st *step.Step, _ int) error {
			v, err := step.Lookup[int32](st, "blocks")
			if err != nil {
				return err
			}
			seen := map[int]int{}
			for i, b := range v.Blocks() {
				nth := seen[b.Rank]
				seen[b.Rank]++
				got, err := v.Get(ctx, step.BlockIndex(i), nil)
				if err := cmp.Or(err, alike("block", got, b.Rank+2*nth, func(k int) int32 { return value(int(st.Number()), b.Rank, 50*nth+k) })); err != nil {
					return fmt.Errorf("block %d: %w", i, err)
				}
				view, err := v.View(ctx, step.BlockIndex(i))
				if err != nil {
					return fmt.Errorf("view of block %d: %w", i, err)
				}
				if !slices.Equal(view.Data(), got) {
					return fmt.Errorf("view of block %d is %v, Get %v", i, view.Data(), got)
				}
				view.Release()
			}
			return nil
		},
	}
}

// single is a value of every rank, or of all.
func single[T step.Element](name string, shape step.Shape, value func(step, rank int) T) zooVar {
	return zooVar{
		name: name,
		define: func(w *sst.Writer, _ int) (func(*sst.WriterStep, int) error, error) {
			v, err := sst.Define[T](w, name, shape)
			return func(st *sst.WriterStep, rank int) error {
				if shape.Kind == step.GlobalValueKind && rank > 0 {
					return nil
				}
				return v.PutValue(st, value(int(st.Number()), rank))
			}, err
		},
		check: func(ctx context.Context, st *step.Step, ranks int) error {
			v, err := step.Lookup[T](st, name)
			if err != nil {
				return err
			}
			if shape.Kind == step.GlobalValueKind {
				ranks = 1
			}
			got, err := v.Get(ctx, nil, nil)
			return cmp.Or(err, alike("values", got, ranks, func(i int) T { return value(int(st.Number()), i) }))
		},
	}
}

// structs is a global array of structs: an int64 and, after a gap, a byte.
func structs() zooVar {
	const size, each = 16, 3
	st := &step.StructType{Name: "pair", Size: size, Fields: []step.StructField{
		{Name: "a", Type: step.Int64, Offset: 0, Count: 1}, {Name: "b", Type: step.Uint8, Offset: 9, Count: 1},
	}}
	element := func(step, i int) [size]byte { return [size]byte{byte(i), byte(step), 9: byte(i * 3)} }
	return zooVar{
		name: "structs",
		define: func(w *sst.Writer, ranks int) (func(*sst.WriterStep, int) error, error) {
			v, err := w.DefineUntyped("structs", step.Struct, st, step.GlobalArray(uint64(ranks*each)))
			return func(s *sst.WriterStep, rank int) error {
				var data []byte
				for i := range each {
					e := element(int(s.Number()), rank*each+i)
					data = append(data, e[:]...)
				}
				return s.PutBytes(v, step.Box{Start: []uint64{uint64(rank * each)}, Count: []uint64{each}}, data)
			}, err
		},
		check: func(ctx context.Context, s *step.Step, ranks int) error {
			v, ok := s.Variable("structs")
			if !ok {
				return errors.New("it is not there")
			}
			got := make([]byte, size*ranks*each)
			if err := v.Read(ctx, step.All, got); err != nil {
				return err
			}
			for i := range ranks * each {
				if e := element(int(s.Number()), i); string(got[i*size:][:size]) != string(e[:]) {
					return fmt.Errorf("element %d is %v, want %v", i, got[i*size:][:size], e)
				}
			}
			return nil
		},
	}
}

// zoo is the table: every type, in every kind of shape. Blocks that are compressed are not
// among them: this writer makes none, and those of others are read in memory of the
// reader (package step).
func zoo() []zooVar {
	list := []zooVar{
		array("i8", real[int8]), array("i16", real[int16]), array("i32", real[int32]), array("i64", real[int64]),
		array("u8", real[uint8]), array("u16", real[uint16]), array("u32", real[uint32]), array("u64", real[uint64]),
		array("f32", real[float32]), array("f64", real[float64]),
		array("c64", func(step, i int) complex64 { return complex(float32(step), float32(i)) }),
		array("c128", func(step, i int) complex128 { return complex(float64(step), float64(-i)) }),
		array("char", charOf),
		blocks(), structs(),
		single("value", step.GlobalValue(), func(step, _ int) float64 { return float64(step) / 4 }),
		single("text", step.GlobalValue(), func(step, _ int) string { return strings.Repeat("x", step*100) }),
		single("values", step.LocalValue(), func(step, rank int) int64 { return int64(step*10 + rank) }),
	}
	return list
}

func charOf(number, i int) step.Char { return step.Char('a' + (number+i)%26) }

// checkZoo checks all variables of a step.
func checkZoo(ctx context.Context, st *step.Step, ranks int) error {
	for _, v := range zoo() {
		if err := v.check(ctx, st, ranks); err != nil {
			return fmt.Errorf("step %d, %s: %w", st.Number(), v.name, err)
		}
	}
	return nil
}

// sessions says which session each rank has.
type sessions struct {
	name           string
	writer, reader func(rank int) *sst.Session
}

// sessionsOf are the ways to share sessions.
func sessionsOf(t *testing.T) []sessions {
	own := func(int) *sst.Session { return quickSession(t) }
	always := func(s *sst.Session) func(int) *sst.Session { return func(int) *sst.Session { return s } }
	one := quickSession(t)
	return []sessions{
		{"one each", own, own},
		{"one for writers and one for readers", always(quickSession(t)), always(quickSession(t))},
		{"one for all", always(one), always(one)},
	}
}

// TestNativeValues reads every type and shape through cohorts of several sizes, whoever
// shares a session, on both planes.
func TestNativeValues(t *testing.T) {
	const steps = 4
	for _, size := range []struct{ writers, readers int }{{1, 1}, {3, 2}, {2, 5}} {
		for _, plane := range []string{"native", "evpath"} {
			for _, s := range sessionsOf(t) {
				t.Run(fmt.Sprintf("%dx%d/%s/%s", size.writers, size.readers, plane, s.name), func(t *testing.T) {
					c := &crew{t: t, name: streamName(t), part: 8}
					c.join(size.writers)
					c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
						return sst.WriterConfig{Session: s.writer(rank), Params: sst.Params{RendezvousReaderCount: none()}}
					}))
					puts := make([][]func(*sst.WriterStep, int) error, size.writers)
					for rank, w := range c.writers {
						for _, v := range zoo() {
							put, err := v.define(w, size.writers)
							if err != nil {
								t.Fatal(err)
							}
							puts[rank] = append(puts[rank], put)
						}
					}
					x := local(t, size.readers)
					for rank, err := range x.open(bounded(t), c.name, func(rank int) sst.ReaderConfig {
						return sst.ReaderConfig{Session: s.reader(rank), Params: sst.Params{DataTransport: plane}}
					}) {
						if err != nil {
							t.Fatalf("reader rank %d: %v", rank, err)
						}
					}
					for range steps {
						c.each(func(rank int, st *sst.WriterStep) error {
							for _, put := range puts[rank] {
								if err := put(st, rank); err != nil {
									return err
								}
							}
							return c.put(rank, st)
						})
						x.each(t, func(_ int, r *sst.Reader) error {
							st, err := r.BeginStep(bounded(t))
							if err != nil {
								return err
							}
							defer st.End()
							return cmp.Or(checkZoo(bounded(t), st, size.writers), verify(bounded(t), st))
						})
					}
					x.each(t, func(_ int, r *sst.Reader) error { return readBy(r, plane) })
					closed := async(func() []error { return c.close() })
					x.close(t)
					c.must(next(t, "Close", closed))
				})
			}
		}
	}
}

// readBy fails unless a reader says that it reads by a plane, and its counts agree: what
// is looked at is not asked for, and the other way round.
func readBy(r *sst.Reader, plane string) error {
	info := r.Info()
	if info.Plane != plane {
		return fmt.Errorf("the plane is %q, want %q", info.Plane, plane)
	}
	for rank, w := range info.Writers {
		looked, sent := w.Viewed+w.Copied, w.Requests+w.Pushes
		switch {
		case plane == "native" && (looked == 0 || sent > 0), plane == "evpath" && (looked > 0 || sent == 0):
			return fmt.Errorf("writer rank %d, read by %s: %+v", rank, plane, w)
		}
	}
	return nil
}

// attachedBy waits until the writer serves as many readers as there are planes, and fails
// unless it says of each the plane by which it reads, in the order of their coming.
func attachedBy(t testing.TB, w *sst.Writer, planes ...string) {
	t.Helper()
	var got []string
	testutil.Eventually(t, fmt.Sprintf("%d readers are attached", len(planes)), func() bool {
		got = nil
		for _, r := range w.Info().Readers {
			if r.Active {
				got = append(got, r.Plane)
			}
		}
		return len(got) == len(planes)
	})
	if !slices.Equal(got, planes) {
		t.Errorf("the writer says that its readers read by %q, want %q", got, planes)
	}
}

// TestNativeBesideOthers has readers of both planes at one writer: all see the same, and
// the end of one means nothing to the others.
func TestNativeBesideOthers(t *testing.T) {
	type peer struct {
		name  string
		plane string
		cfg   func(own *sst.Session) sst.ReaderConfig
	}
	peers := []peer{
		{"native", "native", func(*sst.Session) sst.ReaderConfig { return sst.ReaderConfig{} }},
		{"without shared memory", "evpath", func(*sst.Session) sst.ReaderConfig {
			return sst.ReaderConfig{Session: newSession(t, sst.SessionConfig{NoSharedMemory: true})}
		}},
		{"over sockets", "evpath", func(*sst.Session) sst.ReaderConfig {
			return sst.ReaderConfig{Params: sst.Params{DataTransport: "evpath"}}
		}},
		{"in the writer's session", "native", func(own *sst.Session) sst.ReaderConfig { return sst.ReaderConfig{Session: own} }},
	}
	for victim := range peers {
		for _, how := range []string{"closes", "session ends"} {
			if victim == 3 && how == "session ends" {
				continue // and with it the writer
			}
			t.Run(peers[victim].name+" "+how, func(t *testing.T) {
				own := quickSession(t)
				name := streamName(t)
				x := define(t, create(t, name, sst.WriterConfig{Session: own}), 1000)
				var readers []*sst.Reader
				var planes []string
				var victims *sst.Session
				for i, p := range peers {
					cfg := p.cfg(own)
					if cfg.Session == nil {
						cfg.Session = quickSession(t)
					}
					if i == victim {
						victims = cfg.Session
					}
					readers, planes = append(readers, attach(t, name, cfg)), append(planes, p.plane)
				}
				attachedBy(t, x.w, planes...)
				step := func() {
					t.Helper()
					x.must(t)
					for _, r := range readers {
						takeStep(t, r)
					}
				}
				for range 3 {
					step()
				}
				statPlanes(t, own, x.w, planes)
				for i, r := range readers {
					if err := readBy(r, planes[i]); err != nil {
						t.Errorf("%s: %v", peers[i].name, err)
					}
				}
				x.must(t) // the victim has not taken this one
				if how == "closes" {
					readers[victim].Close()
				} else {
					victims.Close()
				}
				readers, planes = slices.Delete(readers, victim, victim+1), slices.Delete(planes, victim, victim+1)
				for _, r := range readers {
					takeStep(t, r)
				}
				for range 3 {
					step()
				}
				attachedBy(t, x.w, planes...)
				statPlanes(t, own, x.w, planes)
				finished := async(x.w.Close)
				for _, r := range readers {
					beginEOF(t, r)
				}
				if err := next(t, "Close of the writer", finished); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// statPlanes asks the writer as anybody would.
func statPlanes(t testing.TB, s *sst.Session, w *sst.Writer, planes []string) {
	t.Helper()
	st, err := sst.QueryStat(bounded(t), w.Name(), sst.StatConfig{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range st.Readers {
		got = append(got, r.Plane)
	}
	if st.Plane != "native,evpath" || !slices.Equal(got, planes) {
		t.Errorf("Stat says that %q is served, to readers of %q, want %q", st.Plane, got, planes)
	}
}

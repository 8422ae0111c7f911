package sst_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/step"
)

// pushingWriter is an ADIOS2 writer of two ranks, played by the test, that pushes.
// Rank 1 is a process of its own.
type pushingWriter struct {
	*hostileWriter
	second *fake
	reader *sst.Reader
	reg    *sstmsg.ReaderRegister
	say    func(sstmsg.Message)

	encoders [2]*step.Encoder
}

func newPushingWriter(t *testing.T, contact func(second *fake) string) *pushingWriter {
	t.Helper()
	p := &pushingWriter{hostileWriter: newWriter(t, false), second: newFake(t)}
	for i := range p.encoders {
		p.encoders[i] = step.NewEncoder(step.EncoderConfig{})
	}
	got := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "On"}})
	p.say, p.reg = p.answer("evpath")
	m := p.response(p.reg)
	m.CP = append(m.CP, sstmsg.CPWriter{Contact: contact(p.second), WriterID: fakeWSR + 1})
	m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: "there", WriterID: fakeWS + 1})
	p.say(m)
	hear[*sstmsg.ReaderActivate](p.fake)
	o := next(t, "Open", got)
	if o.err != nil {
		t.Fatal(o.err)
	}
	p.reader = o.r
	t.Cleanup(func() { o.r.Close() })
	return p
}

// dial is rank 1 on its way to the reader.
func (p *pushingWriter) dial() carrier.Link {
	p.t.Helper()
	c, err := cm.ParseContact(p.reg.Evpath[0].Contact)
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := p.second.cm.Dial(p.t.Context(), c)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// pusherValue is the one value of "n".
const pusherValue = 42

// encode makes a rank's share of a step: only rank 1 has a value.
func (p *pushingWriter) encode(e *step.Encoder, store step.Store, rank int) step.Output {
	p.t.Helper()
	err := e.Begin(store)
	d := e.Definition("n")
	if err == nil && d == nil {
		d, err = e.Define("n", step.Int64, step.GlobalArray(1))
	}
	if err == nil && rank == 1 {
		err = e.Put(d, step.Box{Start: []uint64{0}, Count: []uint64{1}}, binary.LittleEndian.AppendUint64(nil, pusherValue))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := e.End()
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// readSecond reads the value.
func readSecond(ctx context.Context, st *step.Step) error {
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		return err
	}
	got, err := v.Get(ctx, step.All, nil)
	if err == nil && (len(got) != 1 || got[0] != pusherValue) {
		err = fmt.Errorf("got %v", got)
	}
	return err
}

// step announces a step in which rank 1 has a block of "n", and begins it.
func (p *pushingWriter) step(number int64) (*step.Step, []byte) {
	p.t.Helper()
	m := &sstmsg.TimestepMetadata{ReaderID: p.reg.CP[0].ReaderID, Step: number, CohortSize: 2, PreloadMode: 1}
	var block []byte
	for rank, e := range p.encoders {
		store := step.NewHeapPool(0).NewStore()
		out := p.encode(e, store, rank)
		for _, f := range out.Formats {
			m.Formats = append(m.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob(f.ID[:]), Body: sstmsg.ByteBlob(f.Body)})
		}
		m.Metadata = append(m.Metadata, sstmsg.Block{Data: sstmsg.ByteBlob(out.Metadata)})
		m.Attributes = append(m.Attributes, sstmsg.Block{})
		parts, err := store.Slices(0, out.DataSize)
		if err != nil {
			p.t.Fatal(err)
		}
		block = bytes.Join(parts, nil) // that of the last rank stays
	}
	p.say(m)
	st, err := p.reader.BeginStep(bounded(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	return st, block
}

// TestPusherOfADIOS2Dies: an ADIOS2 writer tells nobody that one of its ranks is dead,
// and pushes nothing that could break: a read of its blocks ends all the same, and
// names the rank, whether or not it had pushed before.
func TestPusherOfADIOS2Dies(t *testing.T) {
	for what, pushed := range map[string]bool{"it has pushed": true, "it has not pushed": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPushingWriter(t, func(second *fake) string { return second.cm.Contact().String() })
			if pushed {
				st, block := p.step(0)
				p.second.send(p.dial(), &sstmsg.Preload{Step: 0, WriterRank: 1, ReaderID: p.reg.Evpath[0].ReaderID, Data: sstmsg.ByteBlob(block)})
				if err := readSecond(bounded(t), st); err != nil {
					t.Fatal(err)
				}
				st.End()
			}
			number := int64(0)
			if pushed {
				number = 1
			}
			st, _ := p.step(number)
			done := async(func() error { return readSecond(bounded(t), st) })
			still(t, "Get", done)
			p.second.cm.Close() // it dies
			err := next(t, "Get", done)
			wants(t, "Get", err, sst.ErrWriterFailed)
			if err != nil && !strings.Contains(err.Error(), "writer rank 1") {
				t.Errorf("%v does not name the rank", err)
			}
		})
	}
}

// TestPusherOutOfReach: a rank that we cannot connect to may push all the same.
func TestPusherOutOfReach(t *testing.T) {
	t.Parallel()
	p := newPushingWriter(t, func(*fake) string { return "AAAAAA==" })
	st, block := p.step(0)
	done := async(func() error { return readSecond(bounded(t), st) })
	still(t, "Get", done)
	p.second.send(p.dial(), &sstmsg.Preload{Step: 0, WriterRank: 1, ReaderID: p.reg.Evpath[0].ReaderID, Data: sstmsg.ByteBlob(block)})
	if err := next(t, "Get", done); err != nil {
		t.Error(err)
	}
}

package cp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// codecDraw fills v with random values. Blobs get at most one piece, as parsed
// ones have.
func codecDraw(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[sstmsg.Blob]():
		v.Set(reflect.ValueOf(sstmsg.ByteBlob(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "blob"))))
		return
	case reflect.TypeFor[Outcome]():
		v.SetUint(rapid.Uint64Range(0, uint64(Aborted)).Draw(t, "outcome"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			codecDraw(t, v.Field(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "here") {
			v.Set(reflect.New(v.Type().Elem()))
			codecDraw(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, "count"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				codecDraw(t, v.Index(i))
			}
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 8, 20).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number") >> (64 - v.Type().Bits()))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	default:
		t.Fatalf("no random %v", v.Type())
	}
}

// codecMessage draws a message of any kind.
func codecMessage(t *rapid.T) Message {
	m := newMessage(messageKind(rapid.IntRange(1, int(kindEnd)-1).Draw(t, "kind")))
	codecDraw(t, reflect.ValueOf(m).Elem())
	return m
}

// TestCodecRoundTrip: whatever a message holds arrives. Every field is drawn, so
// a field that a layout forgets is found.
func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := codecMessage(t)
		prefix := []byte("before")
		b := AppendMessage(prefix, m)
		if !bytes.HasPrefix(b, prefix) {
			t.Fatal("what was there is gone")
		}
		got, err := ParseMessage(b[len(prefix):])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Fatalf("%T:\n%s", m, d)
		}
	})
}

// TestCodecKinds: every kind makes a message of that kind, and no other.
func TestCodecKinds(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for k := messageKind(1); k < kindEnd; k++ {
		m := newMessage(k)
		if m.kind() != k {
			t.Errorf("kind %d makes a %T, which is of kind %d", k, m, m.kind())
		}
		if seen[reflect.TypeOf(m)] {
			t.Errorf("%T twice", m)
		}
		seen[reflect.TypeOf(m)] = true
	}
	for _, k := range []messageKind{0, kindEnd, 255} {
		if m := newMessage(k); m != nil {
			t.Errorf("kind %d makes a %T", k, m)
		}
	}
}

// codecSamples are messages that have something in every field.
func codecSamples() []Message {
	blob := sstmsg.ByteBlob([]byte("blob"))
	fault := Fault{Text: "why", Kinds: 3, Rank: 2}
	format := sstmsg.FormatBlock{Body: blob, ID: sstmsg.ByteBlob([]byte("id"))}
	step := &sstmsg.TimestepMetadata{
		ReaderID: 1, Step: 2, CohortSize: 3, PreloadMode: 1, Formats: []sstmsg.FormatBlock{format},
		Metadata: []sstmsg.Block{{Data: blob}, {}}, Attributes: []sstmsg.Block{{}, {Data: blob}}, Rdma: []sstmsg.RdmaBuffer{{Block: 5, Key: 6}},
		Native: []sstmsg.Block{{Data: blob}, {}},
	}
	response := &sstmsg.WriterResponse{
		Condition: 1, Params: &sstmsg.Params{MarshalMethod: 2, DataTransport: "WAN", ControlModule: "select"}, NextStep: 7,
		CP: []sstmsg.CPWriter{{Contact: "c", WriterID: 8}}, Evpath: []sstmsg.EvpathWriter{{Contact: "d", WriterID: 9}},
		Rdma:   []sstmsg.RdmaWriter{{WriterID: 1, Address: blob, Roll: sstmsg.RdmaBuffer{Block: 1, Key: 2}}},
		Native: []sstmsg.NativeWriter{{Contact: "n"}, {}},
	}
	return []Message{
		&WriterHello{Ranks: 1, Contact: "c", Native: "n", Params: "p"},
		&Contribute{Try: 1, Formats: []sstmsg.FormatBlock{format}, Metadata: []sstmsg.Block{{Data: blob}}, Attributes: []sstmsg.Blob{blob}, Bytes: []uint64{1, 2}, Native: []sstmsg.Block{{Data: blob}}, Full: true},
		&Room{Try: 1}, &Withdraw{Try: 1, Cause: fault}, &Admitted{Reader: 1, Control: []int64{2}, Data: []int64{3}}, &PushFailed{Reader: 1, Cause: fault}, &Finished{},
		&Welcome{Base: 1, Ranks: 2}, &Started{}, &Go{Try: 1}, &Verdict{Try: 1, Step: 2, Outcome: Aborted, Cause: fault},
		&Admit{Reader: 1, Ranks: []sstmsg.EvpathReader{{Contact: "c", ReaderID: 2}}, Weft: true, Observer: true, Plane: "native"}, &Replane{Reader: 1, Plane: "mixed"}, &Dismiss{Reader: 1}, &Push{Reader: 1, Step: 2}, &Free{Step: 1}, &Drained{},
		&ReaderHello{CP: sstmsg.CPReader{Contact: "c", ReaderID: 1}, DP: sstmsg.EvpathReader{Contact: "d", ReaderID: 2}, Params: "p"},
		&Ask{Index: 1}, &Released{Step: 1}, &Locked{}, &Left{}, &Left{Looks: []int64{3, 5}}, &Routed{Try: 1, Native: 2, Total: 3, Cause: fault},
		&TryRoutes{Try: 1, Contacts: []string{"n", ""}},
		&ReaderOpened{Response: response, Plane: "evpath", Weft: true, Writer: "w", Release: "r"},
		&StepTo{Index: 1, Msg: step, Skipped: 2}, &StreamEnd{Cause: fault}, &WriterGone{Cause: fault}, &StreamFailed{Cause: fault},
	}
}

// TestCodecTruncated cuts every kind of message at every byte, and adds one.
func TestCodecTruncated(t *testing.T) {
	seen := map[messageKind]bool{}
	for _, m := range codecSamples() {
		seen[m.(coded).kind()] = true
		b := AppendMessage(nil, m)
		for n := range b {
			if _, err := ParseMessage(b[:n]); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, ErrProtocol) {
				t.Errorf("%T cut to %d of %d bytes: %v", m, n, len(b), err)
			}
		}
		if _, err := ParseMessage(append(b, 0)); !errors.Is(err, errMalformed) || !errors.Is(err, ErrProtocol) {
			t.Errorf("%T with a byte too many: %v", m, err)
		}
	}
	if len(seen) != int(kindEnd)-1 {
		t.Errorf("%d kinds of %d have a sample", len(seen), kindEnd-1)
	}
}

// TestCodecHostile reads what no AppendMessage makes.
func TestCodecHostile(t *testing.T) {
	huge := func(k messageKind, fixed int) []byte {
		b := append([]byte{byte(k)}, make([]byte, fixed)...)
		return binary.AppendUvarint(b, 1<<63)
	}
	verdict := AppendMessage(nil, &Verdict{})
	verdict[17] = uint8(Aborted) + 1
	for name, b := range map[string][]byte{
		"no kind":          {0},
		"unknown kind":     {255, 1, 2},
		"huge text":        huge(kindWriterHello, 8),
		"huge list":        huge(kindContribute, 8),
		"length too long":  append([]byte{byte(kindStreamEnd)}, bytes.Repeat([]byte{0x80}, 11)...),
		"length padded":    append([]byte{byte(kindStreamEnd), 0x80, 0}, make([]byte, 8)...),
		"flag of 2":        append(AppendMessage(nil, &StepTo{})[:9], append([]byte{2}, make([]byte, 8)...)...),
		"huge contacts":    huge(kindTryRoutes, 8),
		"unknown outcome":  verdict,
		"text in a number": []byte(strings.Repeat("a", 7)),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := ParseMessage(b); !errors.Is(err, ErrProtocol) {
				t.Errorf("%T %v", m, err)
			}
		})
	}
}

// TestCodecSharesMemory: what was parsed refers to the message, and what was
// appended does not refer to its source.
func TestCodecSharesMemory(t *testing.T) {
	src := []byte("metadata")
	b := AppendMessage(nil, &StepTo{Msg: &sstmsg.TimestepMetadata{Metadata: []sstmsg.Block{{Data: sstmsg.Blob{src[:4], src[4:]}}}}})
	clear(src)
	m, err := ParseMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	got := m.(*StepTo).Msg.Metadata[0].Data.Bytes()
	if string(got) != "metadata" {
		t.Fatalf("%q", got)
	}
	clear(b)
	if string(got) == "metadata" {
		t.Error("blobs were copied")
	}
}

// FuzzParseMessage: nothing makes the parser panic or allocate more than has
// arrived, and what it takes it can write.
func FuzzParseMessage(f *testing.F) {
	for _, m := range codecSamples() {
		f.Add(AppendMessage(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMessage(b)
		if err != nil {
			if m != nil || !errors.Is(err, ErrProtocol) {
				t.Fatalf("%T with error %v", m, err)
			}
			return
		}
		if again := AppendMessage(nil, m); !bytes.Equal(again, b) {
			t.Fatalf("%T: %x became %x", m, b, again)
		}
	})
}

func BenchmarkCodecStep(b *testing.B) {
	m := &StepTo{Msg: &sstmsg.TimestepMetadata{
		Metadata: []sstmsg.Block{{Data: sstmsg.ByteBlob(make([]byte, 4096))}}, Attributes: make([]sstmsg.Block, 1),
	}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendMessage(buf[:0], m)
		if _, err := ParseMessage(buf); err != nil {
			b.Fatal(err)
		}
	}
}

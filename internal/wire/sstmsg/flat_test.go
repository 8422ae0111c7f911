package sstmsg

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// byBuilder encodes m in the way that works for every message.
func byBuilder(t testing.TB, m Message, o Options) ([][]byte, error) {
	t.Helper()
	c, err := compileFor(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return c.build(reflect.ValueOf(m).Elem()).Buffers(smallBlob)
}

// flatMessages are those that are written in one go.
var flatMessages = []func() Message{
	func() Message { return &ReaderActivate{} },
	func() Message { return &ReaderRequestStep{} }, func() Message { return &ReleaseTimestep{} },
	func() Message { return &LockReaderDefinitions{} }, func() Message { return &CommPatternLocked{} },
	func() Message { return &ReaderClose{} }, func() Message { return &ReadRequest{} },
	func() Message { return &ReadReply{} }, func() Message { return &Preload{} },
	func() Message { return &PeerSetup{} },
}

// TestFlatBytes: whatever is in a flat message, the record has the same pieces as
// the builder's, and fails where that fails.
func TestFlatBytes(t *testing.T) {
	sizes := rapid.SampledFrom([]int{0, 1, 7, 8, 100, smallBlob - 1, smallBlob, smallBlob + 1, 3 * smallBlob})
	rapid.Check(t, func(t *rapid.T) {
		m := flatMessages[rapid.IntRange(0, len(flatMessages)-1).Draw(t, "message")]()
		o := Options{Release: Release(rapid.IntRange(0, 2).Draw(t, "release")), Weft: rapid.Bool().Draw(t, "weft")}
		v := reflect.ValueOf(m).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case f.Kind() == reflect.Int64:
				f.SetInt(rapid.Int64().Draw(t, "n"))
			case f.Kind() == reflect.Int32:
				f.SetInt(int64(rapid.Int32().Draw(t, "n")))
			case f.Type() == blobType:
				var b Blob
				for range rapid.IntRange(0, 4).Draw(t, "pieces") {
					b = append(b, bytes.Repeat([]byte{7}, sizes.Draw(t, "size")))
				}
				f.Set(reflect.ValueOf(b))
			}
		}
		c, err := compileFor(m, o)
		if err != nil || c.flat == nil {
			t.Fatalf("%s is not flat: %v", Name(m), err)
		}
		want, wantErr := c.build(v).Buffers(smallBlob)
		_, got, gotErr := Encode(m, o)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("builder: %v; in one go: %v", wantErr, gotErr)
		}
		if !bytes.Equal(bytes.Join(want, nil), bytes.Join(got, nil)) {
			t.Fatalf("%s:\n% x\n% x", Name(m), want, got)
		}
		if len(got) > len(want) {
			t.Fatalf("%d pieces instead of %d", len(got), len(want))
		}
	})
}

// TestFlatRefersToLargeBlobs: they are not copied.
func TestFlatRefersToLargeBlobs(t *testing.T) {
	data := make([]byte, smallBlob)
	_, parts, err := Encode(&ReadReply{Data: Blob{data, data}}, Options{})
	if err != nil || len(parts) != 3 || &parts[1][0] != &data[0] || &parts[2][0] != &data[0] {
		t.Errorf("%d pieces, %v", len(parts), err)
	}
}

// TestFlatMessages says which messages are flat: a new field of another kind would
// make them slow.
func TestFlatMessages(t *testing.T) {
	for _, make := range flatMessages {
		if c, err := compileFor(make(), Options{}); err != nil || c.flat == nil {
			t.Errorf("%s: %v", Name(make()), err)
		}
	}
	for _, m := range []Message{&TimestepMetadata{}, &WriterResponse{}, &ReaderRegister{}, &DPQueryResponse{}} {
		if c, err := compileFor(m, Options{}); err != nil || c.flat != nil {
			t.Errorf("%s: %v", Name(m), err)
		}
	}
	if _, err := byBuilder(t, &ReleaseTimestep{Step: 1 << 40}, Options{Release: Release210}); err == nil {
		t.Error("a step of 40 bits in 32")
	}
}

// TestEncodeAllocates bounds what each message of a step costs.
func TestEncodeAllocates(t *testing.T) {
	limits := map[string]float64{"metadata": 1, "preload": 1, "reply": 2, "request": 1, "release": 1}
	for name, m := range stepMessages() {
		if n := testing.AllocsPerRun(100, func() { _, _, _ = Encode(m, Options{}) }); n > limits[name] {
			t.Errorf("encode %s: %v allocations, at most %v", name, n, limits[name])
		}
	}
	limits = map[string]float64{"metadata": 1, "preload": 2, "reply": 2, "request": 1, "release": 1}
	for name, m := range stepMessages() {
		f, rec, err := Append(nil, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = Decode(f, rec) }); n > limits[name] {
			t.Errorf("decode %s: %v allocations, at most %v", name, n, limits[name])
		}
	}
}

package operator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// fake is an operator that stores each byte inverted.
type fake ID

func (f fake) ID() ID       { return ID(f) }
func (f fake) Name() string { return "fake" }

func (f fake) Decode(dst, block []byte, _ Block) error {
	for i := range dst {
		dst[i] = ^block[FrameSize+i]
	}
	return nil
}

func TestIDString(t *testing.T) {
	for id, want := range map[ID]string{0: "blosc", 1: "bzip2", 7: "zfp", 10: "mgard_complex", 127: "null", 77: "operator 77", 255: "operator 255"} {
		if got := id.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(id), got, want)
		}
	}
}

func TestRegisterAndDecode(t *testing.T) {
	const id = 200
	if _, ok := Lookup(id); ok {
		t.Fatal("registered already")
	}
	Register(fake(id))
	defer unregister(id)
	if d, ok := Lookup(id); !ok || d.Name() != "fake" {
		t.Errorf("Lookup = %v, %v", d, ok)
	}
	block := append(AppendFrame(nil, id, 1), 0x0f, 0xf0)
	dst := make([]byte, 2)
	if err := Decode(dst, block, Block{}); err != nil || !bytes.Equal(dst, []byte{0xf0, 0x0f}) {
		t.Errorf("Decode = %x, %v", dst, err)
	}
}

func unregister(id ID) {
	registry.Lock()
	defer registry.Unlock()
	delete(registry.byID, id)
}

func TestRegisterPanics(t *testing.T) {
	for name, d := range map[string]Decoder{"nil": nil, "duplicate": fake(Null)} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Register(d)
		})
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			Register(fake(210 + i))
			defer unregister(ID(210 + i))
			for range 100 {
				if _, ok := Lookup(ID(210 + i)); !ok {
					t.Error("lost")
				}
			}
		})
	}
	wg.Wait()
}

func TestUnsupported(t *testing.T) {
	for _, tc := range []struct {
		id   ID
		text []string
	}{
		{ZFP, []string{"zfp", "number 7"}},
		{77, []string{"operator 77"}},
		{Bzip2, []string{"bzip2", "import operator/bzip2"}}, // this test does not import it
	} {
		err := Decode(make([]byte, 1), AppendFrame(nil, tc.id, 1), Block{})
		var ue *UnsupportedError
		if !errors.Is(err, ErrUnsupported) || !errors.As(err, &ue) || ue.ID != tc.id {
			t.Fatalf("%v: %v", tc.id, err)
		}
		for _, text := range tc.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q does not contain %q", err, text)
			}
		}
		if errors.Is(err, ErrCorrupt) {
			t.Errorf("%v is also ErrCorrupt", err)
		}
	}
	if err := (&UnsupportedError{ID: PNG, Detail: "palette"}); !strings.Contains(err.Error(), "png (number 4): unsupported: palette") {
		t.Error(err)
	}
}

func TestFrame(t *testing.T) {
	b := AppendFrame(nil, 4, 9)
	if !bytes.Equal(b, []byte{4, 9, 0, 0}) || len(b) != FrameSize {
		t.Errorf("AppendFrame = %x", b)
	}
	id, version, err := FrameID(b)
	if id != PNG || version != 9 || err != nil {
		t.Errorf("FrameID = %v, %d, %v", id, version, err)
	}
	for n := range FrameSize {
		if _, _, err := FrameID(b[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if err := Decode(nil, b[:n], Block{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: Decode: %v", n, err)
		}
	}
}

func TestNullLiteral(t *testing.T) {
	wire := "\x7f\x01\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + "abc"
	if got := string(AppendNull(nil, []byte("abc"))); got != wire {
		t.Errorf("AppendNull = %q", got)
	}
	dst := make([]byte, 3)
	if err := Decode(dst, []byte(wire), Block{}); err != nil || string(dst) != "abc" {
		t.Errorf("Decode = %q, %v", dst, err)
	}
	for n := range len(wire) {
		if err := Decode(dst, []byte(wire[:n]), Block{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("prefix %d: %v", n, err)
		}
	}
	if err := Decode(nil, AppendNull(nil, nil), Block{}); err != nil {
		t.Errorf("empty block: %v", err)
	}
}

func TestNullRefusesOtherSizes(t *testing.T) {
	for _, size := range []uint64{0, 2, 4, math.MaxUint64, 1 << 40} {
		b := AppendNull(nil, []byte("abc"))
		binary.LittleEndian.PutUint64(b[FrameSize:], size)
		if err := Decode(make([]byte, 3), b, Block{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("inner size %d: %v", size, err)
		}
	}
	for _, n := range []int{0, 2, 4} {
		if err := Decode(make([]byte, n), AppendNull(nil, []byte("abc")), Block{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("dst of %d bytes: %v", n, err)
		}
	}
}

// The first block of x in the nullop datasets: 10 × 30 doubles, v(i) = i + 0.25.
func TestNullFixtures(t *testing.T) {
	for _, name := range []string{"v2.10.2-nullop", "main-nullop"} {
		data := bpfixture.Files(t, name)["data.0"]
		dst := make([]byte, 2400)
		if err := Decode(dst, data[:FrameSize+8+2400], Block{Count: []uint64{10, 30}, ElemSize: 8, Type: 10}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range 300 {
			if got := math.Float64frombits(binary.LittleEndian.Uint64(dst[8*i:])); got != float64(i)+0.25 {
				t.Fatalf("%s: element %d is %v", name, i, got)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(AppendNull(nil, []byte("abc")), 3)
	f.Add(bpfixture.Files(f, "v2.10.2-nullop")["data.0"][:2412], 2400)
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		dst := make([]byte, uint16(n))
		err := Decode(dst, block, Block{})
		if err == nil && !bytes.Equal(AppendNull(nil, dst)[FrameSize:], block[FrameSize:]) {
			t.Fatalf("%x gave %x", block, dst)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
	})
}

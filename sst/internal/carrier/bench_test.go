package carrier

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// echo sends every record of one format back.
type echo struct {
	f *ffs.Format
}

func (e echo) Message(l Link, in Inbound) {
	_ = l.Send(Record{Format: e.f, Parts: [][]byte{in.Data}, Done: func(error) { in.Free() }})
}

func (e echo) Lost(Link, error) {}

// BenchmarkRoundTrip is a small record to the peer and back.
func BenchmarkRoundTrip(b *testing.B) { roundTrip(b, 8) }

// BenchmarkRoundTrip8MiB is a large one; bytes count once for each direction.
func BenchmarkRoundTrip8MiB(b *testing.B) { roundTrip(b, 8<<20) }

func roundTrip(b *testing.B, size int) {
	f := testFormat(b, "F")
	far, _ := open(b, Config{Handler: echo{f}})
	near, r := open(b, Config{})
	l := dial(b, near, far.Contact())
	out := record(f, 1, size)
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Send(out); err != nil {
			b.Fatal(err)
		}
		e := <-r.got
		e.free()
	}
}

// BenchmarkStream is one direction, many small records.
func BenchmarkStream(b *testing.B) {
	f := testFormat(b, "F")
	far, r := open(b, Config{})
	near, _ := open(b, Config{})
	l := dial(b, near, far.Contact())
	out := record(f, 1, 8)
	b.ReportAllocs()
	inFlight := 0
	for b.Loop() {
		if err := l.Send(out); err != nil {
			b.Fatal(err)
		}
		if inFlight++; inFlight == 1000 {
			for ; inFlight > 0; inFlight-- {
				<-r.got
			}
		}
	}
}

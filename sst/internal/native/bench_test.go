package native

import (
	"testing"

	"github.com/weft-fabric/weft/fabric"
)

// A view and its release, of a peer that is connected.
func BenchmarkView(b *testing.B) {
	const n = 1 << 20
	own := open(b, Config{})
	m := alloc(b, own, n)
	other := newServer(b, n)
	for _, c := range []struct {
		name, contact string
		key           fabric.Key
	}{{"own", own.Contact(), m.Key()}, {"other", other.contact, other.key}} {
		b.Run(c.name, func(b *testing.B) {
			p := reach(b, own, c.contact)
			b.ReportAllocs()
			for b.Loop() {
				_, release, err := p.View(b.Context(), c.key, 64, n/2)
				if err != nil {
					b.Fatal(err)
				}
				release()
			}
		})
	}
}

// A Reach of a peer that is connected, and one that connects.
func BenchmarkReach(b *testing.B) {
	own, other := open(b, Config{}), newServer(b, 64)
	for _, held := range []bool{true, false} {
		name := "connects"
		if held {
			name = "connected"
		}
		b.Run(name, func(b *testing.B) {
			if held {
				reach(b, own, other.contact)
			}
			for b.Loop() {
				reach1, err := own.Reach(b.Context(), other.contact)
				if err != nil {
					b.Fatal(err)
				}
				reach1.Close()
			}
		})
	}
}

// Memory that is new, and memory that was in use before; 64 MiB get their pages in Alloc.
func BenchmarkAlloc(b *testing.B) {
	const n = 64 << 20
	b.Run("new", func(b *testing.B) {
		b.SetBytes(n)
		for b.Loop() {
			f := open(b, Config{})
			m, err := f.Alloc(n)
			if err != nil {
				b.Fatal(err)
			}
			m.Free()
			f.Close()
		}
	})
	b.Run("again", func(b *testing.B) {
		f := open(b, Config{})
		b.SetBytes(n)
		for b.Loop() {
			m, err := f.Alloc(n)
			if err != nil {
				b.Fatal(err)
			}
			m.Free()
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		f, err := Open(b.Context(), Config{})
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

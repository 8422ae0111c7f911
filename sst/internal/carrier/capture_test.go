package carrier

import (
	"os"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// What real peers sent in two recorded sessions, without repeats. The files are
// the bytes of the reader, which dialled (a2p), and of the writer (p2a).
var sessions = []struct {
	name           string
	release        Release
	reader, writer []string
}{
	{"a-2.10.2-1x1-read", Release210,
		[]string{"DPQuery", "ReaderRegister", "ReaderActivate", "EvpathReadRequest", "ReleaseTimestep", "ReaderClose"},
		[]string{"DPQueryResponse", "WriterResponse", "timestepMetadata", "WriterClose", "EvpathReadReply"}},
	{"c-main-2x1-min", ReleaseNewer,
		[]string{"DPQuery", "ReaderRegister", "ReaderActivate", "EvpathReadRequest", "ReleaseTimestep", "ReaderClose"},
		[]string{"DPQueryResponse", "WriterResponse", "timestepMetadata", "WriterClose", "EvpathReadReply"}},
}

func capture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names collects formats until the link ends, in order of first occurrence.
func names(t *testing.T, r *recorder) []string {
	t.Helper()
	next(t, "end of the session", r.lost)
	var got []string
	for len(r.got) > 0 {
		if e := <-r.got; !slices.Contains(got, e.format) {
			got = append(got, e.format)
		}
	}
	return got
}

func TestReplayRealReader(t *testing.T) {
	for _, s := range sessions {
		c, r := open(t, Config{})
		p := connect(t, c)
		p.send(capture(t, s.name+".conn0.a2p"))
		e := next(t, "first record", r.got)
		if info := e.link.Info(); info.Release != s.release || !info.Inbound || info.PeerPort == 0 {
			t.Errorf("%s: %+v", s.name, info)
		}
		_ = p.conn.CloseWrite()
		got := append([]string{e.format}, names(t, r)...)
		if !slices.Equal(got, s.reader) {
			t.Errorf("%s: %v", s.name, got)
		}
	}
}

func TestReplayRealWriter(t *testing.T) {
	for _, s := range sessions {
		c, r := open(t, Config{})
		h := newHost(t)
		bytes := capture(t, s.name+".conn0.p2a")
		answer, _, err := cm.ParseHandshake(bytes)
		if err != nil {
			t.Fatal(err)
		}
		id := answer.ID
		if id == cm.ID210 {
			id = 0
		}
		wait := dialAsync(t.Context(), c, h.contact(id))
		p, _, _ := h.accept()
		p.send(bytes)
		_ = p.conn.CloseWrite()
		d := next(t, "link", wait)
		if d.err != nil || d.link.Info().Release != s.release {
			t.Fatalf("%s: %+v", s.name, d)
		}
		if got := names(t, r); !slices.Equal(got, s.writer) {
			t.Errorf("%s: %v", s.name, got)
		}
	}
}

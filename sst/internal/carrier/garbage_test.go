package carrier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// works fails unless a good peer is served.
func works(t *testing.T, c *CM, r *recorder) {
	t.Helper()
	p := join(t, c, 99, 0)
	f := testFormat(t, "Good")
	p.push(f)
	p.send(cm.Data{Record: bytesOf(record(f, 7, 7))}.Append(nil))
	e := next(t, "record of a good peer", r.got)
	if e.format != "Good" || number(e.data) != 7 {
		t.Errorf("%s, %d", e.format, number(e.data))
	}
	_ = p.conn.Close()
	if l := next(t, "end of a good peer", r.lost); !errors.Is(l.err, ErrPeerClosed) {
		t.Error(l.err)
	}
}

// lines is a log that tests can read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestGarbageInsteadOfHandshake: such peers are closed, never become links, and
// the log says who they were.
func TestGarbageInsteadOfHandshake(t *testing.T) {
	var log lines
	c, r := open(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), HandshakeTimeout: time.Second})
	pre := cm.Preamble{Port: 1}.Append(nil)
	after := func(b string) []byte { return append(bytes.Clone(pre), b...) }
	good := hello(77, false).Append(nil)
	swapped := append(bytes.Clone(pre), 0x43, 0x4d, 0x48, 0x00, 1, 0, 0, 20)
	peers := map[string]*raw{}
	for name, b := range map[string][]byte{
		"HTTP":                 []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                  []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		"HTTP after preamble":  after("GET / HTTP/1.1\r\n\r\n"),
		"big-endian":           swapped,
		"data first":           append(bytes.Clone(pre), cm.Data{Record: make([]byte, 100)}.Append(nil)...),
		"huge data first":      after("\x00DMC\xff\xff\xff\x7f"),
		"format first":         append(bytes.Clone(pre), cm.Push(make([]byte, 12), nil).Append(nil)...),
		"CMH of another size":  append(bytes.Clone(pre), append([]byte{0, 0x48, 0x4d, 0x43, 21}, good[5:]...)...),
		"half a preamble":      pre[:2],
		"nothing":              nil,
		"preamble only":        pre,
		"half a handshake":     append(bytes.Clone(pre), good[:11]...),
		"almost all handshake": append(bytes.Clone(pre), good[:19]...),
	} {
		peers[name] = connect(t, c)
		peers[name].send(b)
	}
	for name, p := range peers {
		if u, err := p.r.Next(); u != nil {
			t.Errorf("%s: answered with %+v, %v", name, u, err)
		}
		p.ended()
		if !strings.Contains(log.String(), p.conn.LocalAddr().String()) {
			t.Errorf("%s: the log does not name the peer", name)
		}
	}
	works(t, c, r)
	nothingIn(t, "link", r.lost)
	nothingIn(t, "message", r.got)
	if !strings.Contains(log.String(), "big-endian") {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
}

// TestGarbageOnALink: such links are lost with a clear error; nobody else is.
func TestGarbageOnALink(t *testing.T) {
	f := testFormat(t, "F")
	id := f.ID()
	push := func(id, body []byte) []byte { return cm.Push(id, body).Append(nil) }
	good := push(id[:], f.Body())
	data := func(rec []byte) []byte { return cm.Data{Record: rec}.Append(nil) }
	rec := bytesOf(record(f, 1, 50))
	wrong := id
	wrong[11]++
	damaged := data(rec)
	damaged[len(damaged)-1]++
	var many []byte
	for i := range 5 {
		g := testFormat(t, strings.Repeat("x", i+1))
		gid := g.ID()
		many = append(many, push(gid[:], g.Body())...)
	}
	tests := []struct {
		name string
		send []byte
		want error
	}{
		{"unknown magic", []byte("what?"), cm.ErrMagic},
		{"big-endian", []byte("CMD\x00\x00\x00\x00\x10"), cm.ErrByteOrder},
		{"unused unit", []byte("\x00LMC\x00\x00\x00\x00"), cm.ErrUnsupported},
		{"huge record", binary.LittleEndian.AppendUint32([]byte("\x00DMC"), 1<<30), cm.ErrTooLarge},
		{"huge long record", append([]byte("\x00BMC"), bytes.Repeat([]byte{0x11}, 12)...), cm.ErrMalformed},
		{"damaged record", append(bytes.Clone(good), damaged...), cm.ErrChecksum},
		{"unknown format", data(rec), ErrUnknownFormat},
		{"record without ID", append(bytes.Clone(good), data(rec[:11])...), ErrProtocol},
		{"second handshake", hello(1, false).Append(nil), ErrProtocol},
		{"short format ID", push(id[:11], f.Body()), ErrProtocol},
		{"long format ID", push(append(id[:], 0), f.Body()), ErrProtocol},
		{"wrong format ID", push(wrong[:], f.Body()), ErrProtocol},
		{"another body", append(bytes.Clone(good), push(id[:], append(bytes.Clone(f.Body()), 0))...), ErrProtocol},
		{"broken body", push(id[:], f.Body()[:20]), ffs.ErrTruncated},
		{"body with a tail", push(id[:], append(bytes.Clone(f.Body()), 0, 0, 0, 0)), ErrProtocol},
		{"many formats", many, ErrLimit},
	}
	c, r := open(t, Config{MaxFormats: 4, MaxRecord: 1 << 20})
	for _, tt := range tests {
		p := join(t, c, 77, 0)
		p.send(tt.send)
		l := next(t, tt.name, r.lost)
		if le, ok := errors.AsType[*LinkError](l.err); !ok || !errors.Is(l.err, tt.want) || le.Op != "read" {
			t.Errorf("%s: %v", tt.name, l.err)
		}
		p.ended()
	}
	works(t, c, r)
	nothingIn(t, "message", r.got)
}

func TestCutOffRecord(t *testing.T) {
	c, r := open(t, Config{})
	p := join(t, c, 77, 0)
	p.send(cm.Data{Record: make([]byte, 100_000)}.Append(nil)[:70_000])
	_ = p.conn.CloseWrite()
	l := next(t, "end", r.lost)
	if l.err == nil || errors.Is(l.err, ErrPeerClosed) {
		t.Errorf("a record that was cut off: %v", l.err)
	}
}

// TestFormatsAreLearned: repeats, queries and responses do no harm.
func TestFormatsAreLearned(t *testing.T) {
	c, r := open(t, Config{MaxFormats: 1})
	p := join(t, c, 77, 0)
	f := testFormat(t, "F")
	p.push(f)
	p.push(f)
	id := f.ID()
	p.send(cm.FormatMessage{Type: cm.FormatQuery, First: id[:]}.Append(nil))
	p.send(cm.FormatMessage{Type: cm.FormatResponse, First: f.Body()}.Append(nil))
	rec := bytesOf(record(f, 3, 3))
	p.send(cm.AttrData{Attrs: []byte{0, 0, 0, 0}, Record: rec}.Append(nil))
	p.send(cm.LongData{Record: rec}.Append(nil))
	for range 2 {
		if e := next(t, "record", r.got); !bytes.Equal(e.data, rec) || e.link.Info().FormatsKnown != 1 {
			t.Errorf("%x", e.data)
		}
	}
}

func TestFormatsAreBoundedInBytes(t *testing.T) {
	f, g := testFormat(t, "F"), testFormat(t, "G")
	table := formatTable{max: 10, maxBytes: len(f.Body()) + len(g.Body()) - 1}
	fid, gid := f.ID(), g.ID()
	if err := table.push(cm.Push(fid[:], f.Body())); err != nil {
		t.Fatal(err)
	}
	if err := table.push(cm.Push(gid[:], g.Body())); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if got, err := table.of(bytesOf(record(f, 1, 1))); err != nil || got.Name() != "F" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := table.of(bytesOf(record(g, 1, 1))); !errors.Is(err, ErrUnknownFormat) {
		t.Error(err)
	}
}

func TestTooManyLinks(t *testing.T) {
	c, r := open(t, Config{MaxLinks: 2})
	f := testFormat(t, "F")
	first := join(t, c, 77, 0)
	connect(t, c) // a handshake counts
	first.push(f)
	first.send(cm.Data{Record: bytesOf(record(f, 1, 1))}.Append(nil))
	next(t, "record", r.got)
	connect(t, c).ended()
	_ = first.conn.Close()
	next(t, "end", r.lost)
	works(t, c, r)
}

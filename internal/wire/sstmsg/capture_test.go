package sstmsg

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// captureDir holds the captured sessions of package cm.
const captureDir = "../cm/testdata/captures"

// capture is one record of a captured session with its format.
type capture struct {
	file   string
	format *ffs.Format
	record []byte
}

// captures returns every record of every captured session.
func captures(t testing.TB) []capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(captureDir, "*.conn*.bin"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", captureDir, err)
	}
	var list []capture
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".a2p.bin") {
			b = b[4:] // the preamble of the active side
		}
		list = append(list, records(t, filepath.Base(file), b)...)
	}
	return list
}

// records splits one direction of a connection.
func records(t testing.TB, file string, b []byte) []capture {
	t.Helper()
	formats := map[ffs.ID]*ffs.Format{}
	var list []capture
	r := cm.NewReader(bytes.NewReader(b), cm.ReaderConfig{})
	for {
		u, err := r.Next()
		if err != nil {
			return list
		}
		switch u := u.(type) {
		case cm.FormatMessage:
			f, _, err := ffs.Parse(u.Second)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			formats[f.ID()] = f
		case cm.Data:
			id, ok := ffs.RecordID(u.Record)
			if !ok || formats[id] == nil {
				t.Fatalf("%s: record of unknown format %v", file, id)
			}
			list = append(list, capture{file, formats[id], bytes.Clone(u.Record)})
		}
	}
}

func TestCapturesDecode(t *testing.T) {
	seen := map[string]int{}
	for _, c := range captures(t) {
		m, err := Decode(c.format, c.record)
		if err != nil {
			t.Errorf("%s: %s: %v", c.file, c.format.Name(), err)
			continue
		}
		seen[Name(m)]++
	}
	for _, name := range []string{
		"DPQuery", "DPQueryResponse", "ReaderRegister", "PeerSetup", "WriterResponse", "ReaderActivate", "ReaderRequestStep",
		"timestepMetadata", "ReleaseTimestep", "LockReaderDefinitions", "CommPatternLocked", "WriterClose", "ReaderClose",
		"EvpathReadRequest", "EvpathReadReply", "EvpathPreload",
	} {
		if seen[name] == 0 {
			t.Errorf("no %s in the captures", name)
		}
	}
}

// TestCapturesEncode re-encodes each message from its Go struct: the bytes and
// the format must be those of the real peer.
func TestCapturesEncode(t *testing.T) {
	for _, c := range captures(t) {
		m, err := Decode(c.format, c.record)
		if err != nil {
			t.Fatal(err)
		}
		rel := ReleaseMain
		if strings.Contains(c.file, "2.10.2") || sender210(c.file) {
			rel = Release210
		}
		f, got, err := Append(nil, m, Options{Release: rel})
		if err != nil {
			t.Errorf("%s: %s: %v", c.file, Name(m), err)
			continue
		}
		if f.ID() != c.format.ID() {
			t.Errorf("%s: %s: format %v, the peer has %v", c.file, Name(m), f.ID(), c.format.ID())
		}
		if !bytes.Equal(got, c.record) {
			t.Errorf("%s: %s: bytes differ\n got %x\nwant %x", c.file, Name(m), got, c.record)
		}
	}
}

// sender210 tells which side of the two mixed sessions is 2.10.2.
func sender210(file string) bool {
	switch {
	case strings.HasPrefix(file, "x1-w2102"):
		return strings.Contains(file, "p2a")
	case strings.HasPrefix(file, "x2-wmain"):
		return strings.Contains(file, "a2p")
	}
	return false
}

package sstmsg

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// TestKnownIDs compares our formats with those that real peers push
// (docs/wire/ffs.md §3). The ID is a hash of the whole format, so one wrong
// letter, size or offset changes it.
func TestKnownIDs(t *testing.T) {
	rdmaRegister := &ReaderRegister{Rdma: []RdmaReader{}}
	rdmaResponse := &WriterResponse{Rdma: []RdmaWriter{}}
	rdmaStep := &TimestepMetadata{Rdma: []RdmaBuffer{}}
	for _, c := range []struct {
		m                Message
		in210, main, any string // any: the same in both
	}{
		{m: &DPQuery{}, any: "02000023086cf383af9fc397"},
		{m: &DPQueryResponse{}, any: "02000027d02ddad87f49360d"},
		{m: &ReaderRegister{}, any: "0200009a40c4fcb4249a0787"},
		{m: rdmaRegister, any: "020000a271119b6f29cc3dbc"},
		{m: &WriterResponse{}, in210: "020001b50c2558a16c326550", main: "020001c8d29bf3b2b81b92b8"},
		{m: rdmaResponse, main: "020001f9e9cbcfb0fa973318"},
		{m: &PeerSetup{}, any: "0200002ab48afd5780b2b510"},
		{m: &ReaderActivate{}, any: "02000019d952f615b60dcc2a"},
		{m: &ReaderRequestStep{}, any: "0200001afc2958ba4cbc742f"},
		{m: &TimestepMetadata{}, in210: "020000bde3fc3837570f06ab", main: "020000bd9b75bb4fda015d21"},
		{m: rdmaStep, main: "020000ead45ccac57f5015e8"},
		{m: &ReleaseTimestep{}, in210: "020000219285bc284493773b", main: "020000210ee2118818d8303a"},
		{m: &LockReaderDefinitions{}, main: "0200002389aacf848deb6fdd"},
		{m: &CommPatternLocked{}, main: "020000220f091b77017a918c"},
		{m: &WriterClose{}, in210: "02000021af31a46827532d10", main: "020000215e744c4d27560f16"},
		{m: &ReaderClose{}, any: "0200001858bdd7b4b95d2179"},
		{m: &ReadRequest{}, any: "0200004dad3a9da6db8ed1c2"},
		{m: &ReadReply{}, any: "0200003de1904eb953f0b3a6"},
		{m: &Preload{}, any: "0200003c65fc5841dfb012e0"},
	} {
		if c.any != "" {
			c.in210, c.main = c.any, c.any
		}
		for rel, want := range map[Release]string{Release210: c.in210, ReleaseMain: c.main} {
			if want == "" {
				continue
			}
			f, _, err := Append(nil, c.m, Options{Release: rel})
			if err != nil {
				t.Fatal(err)
			}
			if got := f.ID().String(); got != want {
				t.Errorf("%s, %v, %s plane: %s, want %s", Name(c.m), rel, planeOf(c.m), got, want)
			}
		}
	}
}

// TestRecordLengths checks the record lengths of docs/wire/sst.md §3 and §4, newest
// layout.
func TestRecordLengths(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want int
	}{
		{&DPQuery{}, 16},
		{&DPQueryResponse{}, 16},
		{&ReaderRegister{}, 40},
		{&ReaderActivate{}, 8},
		{&ReaderRequestStep{}, 8},
		{&ReleaseTimestep{}, 16},
		{&LockReaderDefinitions{}, 16},
		{&ReaderClose{}, 8},
		{&PeerSetup{}, 16},
		{&WriterResponse{}, 40},
		{&TimestepMetadata{}, 56},
		{&CommPatternLocked{}, 16},
		{&WriterClose{}, 16},
		{&ReadRequest{}, 48},
		{&ReadReply{}, 40},
		{&Preload{}, 40},
	} {
		f, _, err := Append(nil, c.m, Options{Release: ReleaseMain})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Structs()[0].RecordLen; got != c.want {
			t.Errorf("%s: %d bytes, want %d", Name(c.m), got, c.want)
		}
	}
	for rel, want := range map[Release]int{Release210: 160, Release212: 168, ReleaseMain: 176} {
		f, _, err := Append(nil, &WriterResponse{Params: &Params{}}, Options{Release: rel})
		if err != nil {
			t.Fatal(err)
		}
		if got := params(f).RecordLen; got != want {
			t.Errorf("SstParams of %v: %d bytes, want %d", rel, got, want)
		}
	}
}

func params(f *ffs.Format) ffs.Struct {
	for _, s := range f.Structs() {
		if s.Name == "SstParams" {
			return s
		}
	}
	return ffs.Struct{}
}

// TestParamsVariants names the fields that each release has and others lack: a
// real reader refuses any other set (docs/wire/sst.md §4).
func TestParamsVariants(t *testing.T) {
	fields := func(rel Release) map[string]bool {
		f, _, err := Append(nil, &WriterResponse{Params: &Params{}}, Options{Release: rel})
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]bool{}
		for _, field := range params(f).Fields {
			set[field.Name] = true
		}
		return set
	}
	in210, in212, main := fields(Release210), fields(Release212), fields(ReleaseMain)
	if len(in210) != 26 || len(in212) != 27 || len(main) != 28 {
		t.Errorf("%d, %d, %d fields", len(in210), len(in212), len(main))
	}
	if in210["RemoteGroup"] || !in212["RemoteGroup"] || in212["MercuryProtocol"] || !main["MercuryProtocol"] {
		t.Error("RemoteGroup came with 2.11, MercuryProtocol after 2.12")
	}
	for rel, want := range map[Release]string{Release210: "2.10", Release212: "2.12", ReleaseMain: "main", 9: "unknown"} {
		if rel.String() != want {
			t.Errorf("release %d is called %q", rel, rel)
		}
	}
}

package cp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// saying is a message of a step that is not delivered: attribute records by rank,
// and the IDs of formats.
func saying(mode int32, attributes []string, formats ...string) *sstmsg.TimestepMetadata {
	m := &sstmsg.TimestepMetadata{PreloadMode: mode, Attributes: make([]sstmsg.Block, len(attributes))}
	for i, a := range attributes {
		m.Attributes[i].Data = sstmsg.ByteBlob([]byte(a))
	}
	for _, f := range formats {
		m.Formats = append(m.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob([]byte(f)), Body: sstmsg.ByteBlob([]byte("body"))})
	}
	return m
}

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		last, m *sstmsg.TimestepMetadata
		full    bool
		want    *sstmsg.TimestepMetadata // nil: it cannot be
	}{
		"nothing new":               {saying(0, []string{"a", ""}), saying(0, []string{"", ""}), false, saying(0, []string{"a", ""})},
		"the last of each rank":     {saying(0, []string{"a", "b", ""}), saying(0, []string{"", "c", "d"}), true, saying(0, []string{"a", "c", "d"})},
		"formats":                   {saying(0, nil, "f", "g"), saying(0, nil, "h"), false, saying(0, nil, "f", "g", "h")},
		"only what is new":          {saying(0, []string{"a", ""}), saying(0, []string{"b", ""}), false, nil},
		"new of another rank":       {saying(0, []string{"a", ""}), saying(0, []string{"", "b"}), false, saying(0, []string{"a", "b"})},
		"new, and the same":         {saying(0, []string{"a"}), saying(0, []string{"a"}), false, saying(0, []string{"a"})},
		"a rank more":               {saying(0, []string{"a"}), saying(0, []string{"", "b"}), true, nil},
		"a rank more, without news": {saying(0, []string{"a"}), saying(0, []string{"", ""}), true, saying(0, []string{"a"})},
		"learned preload":           {saying(1, nil), saying(2, nil), true, nil},
		"more of learned preload":   {saying(2, nil), saying(2, nil), true, saying(2, nil)},
		"another mode":              {saying(0, nil), saying(1, nil), true, saying(0, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			before := withoutData(c.last)
			ok := merge(c.last, c.m, c.full)
			want := c.want
			if want == nil {
				want = before
			}
			if d := cmp.Diff(want, c.last, cmp.Comparer(sameBlob)); ok != (c.want != nil) || d != "" {
				t.Errorf("merged %v:\n%s", ok, d)
			}
		})
	}
}

func sameBlob(a, b sstmsg.Blob) bool { return string(a.Bytes()) == string(b.Bytes()) }

// TestFullAttributes: what a writer says of its attributes, and what is known of Weft.
func TestFullAttributes(t *testing.T) {
	oneTime := &sstmsg.WriterResponse{Params: &sstmsg.Params{UseOneTimeAttributes: 1}}
	for _, c := range []struct {
		weft     bool
		response *sstmsg.WriterResponse
		want     bool
	}{{true, oneTime, true}, {false, oneTime, false}, {false, goodResponse(), true}, {false, &sstmsg.WriterResponse{}, false}, {false, nil, false}} {
		if got := fullAttributes(c.weft, c.response); got != c.want {
			t.Errorf("weft %v, %+v: %v", c.weft, c.response, got)
		}
	}
}

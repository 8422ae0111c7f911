package ping

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var allVerbs = []verb{hello, welcome, setJob, ready, allHere, endJob, done, bye}

// controls are messages as they are sent.
func controls() []control {
	j := newJob(Work{Op: Read, Iters: 50}, Rate, 1000)
	slow := newJob(Work{Op: Write, Iters: 50, Pause: time.Millisecond}, Latency, 8)
	return []control{
		{Verb: hello, Version: version, Address: "shm://x"}, {Verb: welcome}, {Verb: setJob, Job: &j, Key: 1 << 63}, {Verb: setJob, Job: &slow},
		{Verb: ready, Key: 7}, {Verb: allHere}, {Verb: endJob}, {Verb: done, CPU: 0.25}, {Verb: bye},
	}
}

func TestControl(t *testing.T) {
	for _, c := range controls() {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > controlMax {
			t.Errorf("%s takes %d bytes", c.Verb, len(b))
		}
		got, err := parseControl(b, c.Verb, bye)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, got); d != "" {
			t.Error(d)
		}
		if _, err := parseControl(b, "other"); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", b, err)
		}
		for i := range b {
			if _, err := parseControl(b[:i], c.Verb); !errors.Is(err, ErrProtocol) {
				t.Errorf("%s: %v", b[:i], err)
			}
		}
	}
}

func TestBadControl(t *testing.T) {
	for _, text := range []string{
		`{"verb":"hello","version":3,"address":"x"}`, `{"verb":"hello","version":2}`, `{"verb":"job"}`,
		`{"verb":"job","job":{"op":"read","phase":"rate","size":8,"warm":1,"iters":10,"slots":65}}`,
		`{"verb":"job","job":{"op":"read","phase":"rate","size":8,"warm":-1,"iters":10,"slots":64}}`,
		`{"verb":"job","job":{"op":"read","phase":"rate","size":8,"warm":1,"iters":0,"slots":64}}`,
		`{"verb":"job","job":{"op":"read","phase":"rate","size":99999999999,"warm":1,"iters":10,"slots":1}}`,
		`{"verb":"job","job":{"op":"","phase":"rate","size":8,"warm":1,"iters":10,"slots":64}}`,
		`{"verb":"job","job":{"op":"read","phase":"","size":8,"warm":1,"iters":10,"slots":64}}`,
		`{"verb":"job","job":{"op":"jump","phase":"rate","size":8,"warm":1,"iters":10,"slots":64}}`,
		`{"verb":"job","job":{"op":"tagged","phase":"latency","size":8,"warm":1,"iters":10,"slots":2,"pause":-1}}`,
		`{"verb":"job","job":{"op":"tagged","phase":"latency","size":8,"warm":1,"iters":10,"slots":2,"pause":1000000001}}`,
		`{"verb":"job","job":{"op":"tagged","phase":"rate","size":8,"warm":1,"iters":10,"slots":64,"pause":1}}`,
		`{"verb":"job","job":{"op":"read","phase":"latency","size":8,"warm":1,"iters":10,"slots":64,"pause":1}}`,
		`[]`, ``, `{"verb":7}`,
	} {
		if c, err := parseControl([]byte(text), allVerbs...); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	if _, err := parseControl([]byte(`{"verb":"done","error":"one\ntwo"}`), ready); !errors.Is(err, errNo) || !strings.Contains(err.Error(), `"one; two"`) {
		t.Error(err)
	}
	if _, err := parseControl([]byte(`{"verb":"done","error":"no memory"}`), ready); !errors.Is(err, errNo) || !OfOther(err) {
		t.Error(err)
	}
}

// Whatever comes, what a job asks for is bounded.
func FuzzControl(f *testing.F) {
	for _, c := range controls() {
		b, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseControl(b, allVerbs...)
		if err != nil || c.Job == nil || c.Verb != setJob {
			return
		}
		if j := c.Job; j.Size < 0 || j.Slots < 1 || j.Size*j.Slots > max(slotBytes, 2*MaxSize) || j.total() < 1 || j.total() > 2*MaxIters || j.Pause < 0 || j.Pause > MaxPause {
			t.Errorf("%+v", j)
		}
	})
}

package sst

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// deafLink takes everything and never hands it on.
type deafLink struct {
	carrier.Link
	sent    []carrier.Record
	aborted error
}

func (l *deafLink) Send(r carrier.Record) error { l.sent = append(l.sent, r); return nil }
func (l *deafLink) Abort(err error)             { l.aborted = err }

// TestStatAnswersAreBounded asks without end over a link that takes nothing.
func TestStatAnswersAreBounded(t *testing.T) {
	w, err := Create(t.Context(), t.TempDir()+"/s", WriterConfig{Params: Params{RendezvousReaderCount: new(int), NetworkInterface: "lo"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	l := &deafLink{}
	for range maxAnswers {
		w.stat(l, &sstmsg.StatQuery{})
	}
	if l.aborted != nil {
		t.Fatalf("%d questions are too many: %v", maxAnswers, l.aborted)
	}
	l.sent[0].Done(nil)
	w.stat(l, &sstmsg.StatQuery{})
	if l.aborted != nil || len(l.sent) != maxAnswers+1 {
		t.Fatalf("%d answers, %v", len(l.sent), l.aborted)
	}
	w.stat(l, &sstmsg.StatQuery{})
	if l.aborted == nil || len(l.sent) != maxAnswers+1 {
		t.Errorf("%d answers, %v", len(l.sent), l.aborted)
	}
	w.session.mu.Lock()
	delete(w.session.links, l)
	w.session.mu.Unlock()
	l.sent[1].Done(nil) // long after the link has gone
}

// TestStatNames: what programs read has names of one kind, also for fields that
// come later.
func TestStatNames(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	var check func(typ reflect.Type, path string)
	check = func(typ reflect.Type, path string) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			check(typ.Elem(), path)
		case reflect.Struct:
			if typ.PkgPath() == "time" {
				return
			}
			for i := range typ.NumField() {
				f := typ.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if !f.Anonymous && !snake.MatchString(name) {
					t.Errorf("%s.%s is called %q in JSON", path, f.Name, name)
				}
				check(f.Type, path+"."+f.Name)
			}
		}
	}
	check(reflect.TypeFor[Stat](), "Stat")
	check(reflect.TypeFor[ReaderInfo](), "ReaderInfo")
}

// TestStatOfVeryManyReaders cuts the list to fit.
func TestStatOfVeryManyReaders(t *testing.T) {
	st := Stat{Stream: "0x1"}
	const n = 10000
	for i := range n {
		st.Readers = append(st.Readers, AttachedReader{Addr: fmt.Sprintf("10.0.0.1:%d", i), Release: "2.12"})
	}
	text, err := st.encode(maxStatText)
	if err != nil || len(text) > maxStatText {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got, err := decodeStat(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Readers) == 0 || len(got.Readers)+got.MoreReaders != n || got.Readers[1] != st.Readers[1] || len(st.Readers) != n {
		t.Errorf("%d readers and %d more of %d", len(got.Readers), got.MoreReaders, n)
	}
	if _, err := st.encode(10); err == nil {
		t.Error("ten bytes are enough")
	}
}

// TestEffective: each parameter of a side is there once, with its default until
// it is given.
func TestEffective(t *testing.T) {
	zero := 0
	for s, p := range map[Side]Params{
		WriterSide: {RendezvousReaderCount: &zero, QueueFullPolicy: "discard", StatsLevel: 1},
		ReaderSide: {OpenTimeoutSecs: 5, SpeculativePreloadMode: "Auto"},
	} {
		list, err := p.Effective(s)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"RendezvousReaderCount": "0", "QueueFullPolicy": "Discard", "StatsLevel": "1", "OpenTimeoutSecs": "5"}
		i := 0
		for _, d := range paramTable {
			if d.sides&s == 0 {
				continue
			}
			w := EffectiveParam{Name: d.name, Value: d.def}
			if v, given := want[d.name]; given {
				w.Value, w.Set = v, true
			}
			if list[i] != w {
				t.Errorf("%v: %+v, want %+v", s, list[i], w)
			}
			i++
		}
		if i != len(list) {
			t.Errorf("%v: %d values, want %d", s, len(list), i)
		}
	}
	if _, err := (Params{OpenTimeoutSecs: 5}).Effective(WriterSide); !errors.Is(err, ErrParam) {
		t.Errorf("a parameter of the other side: %v", err)
	}
}

// FuzzDecodeStat reads what a writer may say.
func FuzzDecodeStat(f *testing.F) {
	text, err := json.Marshal(Stat{Params: []EffectiveParam{{Name: "a"}}, WriterInfo: WriterInfo{Readers: []AttachedReader{{}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"time":"2026-01-01T00:00:00Z","readers":null,"params":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st, err := decodeStat(text)
		if err != nil {
			return
		}
		again, err := st.encode(1 << 30)
		if err != nil {
			t.Fatalf("%+v cannot be said again: %v", st, err)
		}
		if _, err := decodeStat(again); err != nil && len(again) <= maxStatText {
			t.Errorf("%s cannot be read back: %v", again, err)
		}
	})
}

package sst_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// ask asks through a session of the test's own.
func ask(t testing.TB, name string) (sst.Stat, error) {
	t.Helper()
	return sst.QueryStat(bounded(t), name, sst.StatConfig{Session: quickSession(t), Timeout: patience})
}

func TestQueryStat(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{Ranks: 3, Params: sst.Params{QueueLimit: 5}})
	x := define(t, w, 100)
	first, err := ask(t, name)
	if err != nil {
		t.Fatal(err)
	}
	attach(t, name, sst.ReaderConfig{})
	testutil.Eventually(t, "the reader is active", func() bool { return w.Info().Readers[0].Active })
	x.must(t)
	x.must(t)
	st, err := ask(t, name+".sst")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w.Info(), st.WriterInfo); d != "" {
		t.Errorf("told is not what the writer knows (-knows +told):\n%s", d)
	}
	if st.NextStep != 2 || st.Held != 2 || st.Ranks != 3 || len(st.Readers) != 1 || st.Readers[0].Held != 2 || st.Ending || st.MoreReaders != 0 {
		t.Errorf("%+v", st)
	}
	if want := uint64(2 * 100 * 8); st.Written < want || first.Written != 0 {
		t.Errorf("%d bytes written, first %d; want at least %d", st.Written, first.Written, want)
	}
	if st.Stream != first.Stream || st.Time.Before(first.Time) {
		t.Errorf("stream %s at %v, then %s at %v", first.Stream, first.Time, st.Stream, st.Time)
	}
	if id, _ := readContact(t, name); st.Stream != fmt.Sprintf("%#x", id) {
		t.Errorf("stream %s, the contact file says %#x", st.Stream, id)
	}
	got := map[string]sst.EffectiveParam{}
	for _, p := range st.Params {
		got[p.Name] = p
	}
	if got["QueueLimit"] != (sst.EffectiveParam{Name: "QueueLimit", Value: "5", Set: true}) || got["QueueFullPolicy"].Value != "Block" || got["QueueFullPolicy"].Set {
		t.Errorf("parameters %+v", got)
	}
}

// TestQueryStatDisturbsNobody asks a writer that waits in its rendezvous, many
// times, with a full queue too: nothing of it counts, and nothing stays.
func TestQueryStatDisturbsNobody(t *testing.T) {
	name := streamName(t)
	log, logger := testutil.NewLog(slog.LevelInfo)
	session := newSession(t, sst.SessionConfig{Logger: logger})
	created := async(func() error {
		w, err := sst.Create(bounded(t), name, sst.WriterConfig{Session: session, Params: sst.Params{RendezvousReaderCount: count(1), QueueLimit: 1}})
		if err != nil {
			return err
		}
		return w.Close()
	})
	asker := quickSession(t)
	for i := range 20 {
		st, err := sst.QueryStat(bounded(t), name, sst.StatConfig{Session: asker, Wait: patience})
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Readers) != 0 || st.NextStep != 0 || st.Ending {
			t.Fatalf("question %d: %+v", i, st)
		}
	}
	select {
	case err := <-created:
		t.Fatalf("the writer has gone on: %v", err)
	default:
	}
	r := attach(t, name, sst.ReaderConfig{})
	beginEOF(t, r)
	if err := next(t, "end of the writer", created); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, "dropping") || strings.Contains(text, "failed") {
		t.Errorf("the writer's log: %s", text)
	}
}

// TestQueryStatOfADIOS2 finds writers without Weft's mark: they are not even
// dialled.
func TestQueryStatOfADIOS2(t *testing.T) {
	for release, contact := range map[string]string{
		"2.10 or earlier": "AAIBAJTJ8o0BwQAAATkCmAEAAH9JOEt3AwAAAAMAbG8AAAAA",
		"2.11 or later":   "",
	} {
		t.Run(release, func(t *testing.T) {
			name, p := streamName(t), newFake(t)
			p.publish(name, 7, false)
			if contact != "" {
				c, err := cm.ParseContact(contact)
				if err != nil {
					t.Fatal(err)
				}
				writeContact(t, name, 7, c)
			}
			_, err := ask(t, name)
			wants(t, "asking ADIOS2", err, sst.ErrNoStat)
			if !strings.Contains(err.Error(), release) || !strings.Contains(err.Error(), "weft ls") {
				t.Errorf("the error says too little: %v", err)
			}
			if err := p.cm.Close(); err != nil {
				t.Error(err)
			}
			if len(p.lost) > 0 || len(p.got) > 0 {
				t.Errorf("%d connections were made, %d messages came", len(p.lost), len(p.got))
			}
		})
	}
}

func TestQueryStatOfNobody(t *testing.T) {
	dir := t.TempDir()
	_, err := ask(t, filepath.Join(dir, "nosuch"))
	wants(t, "no file", err, sst.ErrNoStream)
	wants(t, "no file", err, os.ErrNotExist)

	name := filepath.Join(dir, "gone")
	w := create(t, name, sst.WriterConfig{})
	stream, contact := readContact(t, name)
	_, err = ask(t, filepath.Join(dir, "gon"))
	wants(t, "misspelt", err, sst.ErrNoStream)
	if !strings.Contains(err.Error(), "the folder has: gone") {
		t.Errorf("no hint: %v", err)
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, stream, contact) // the process is there, and so is its session
	_, err = ask(t, name)
	wants(t, "ended", err, sst.ErrClosed)

	p := newFake(t)
	c := p.cm.Contact()
	p.cm.Close()
	writeContact(t, name, 7, c)
	_, err = ask(t, name)
	wants(t, "dead", err, sst.ErrStale)

	if err := os.WriteFile(name+".sst", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = ask(t, name)
	wants(t, "no contact file", err, sst.ErrContact)
	_, err = ask(t, "")
	if err == nil {
		t.Error("no name: no error")
	}
}

// TestQueryStatWaits asks before there is a writer.
func TestQueryStatWaits(t *testing.T) {
	name := streamName(t)
	asked := async(func() error {
		_, err := sst.QueryStat(bounded(t), name, sst.StatConfig{Session: quickSession(t), Wait: patience})
		return err
	})
	create(t, name, sst.WriterConfig{})
	if err := next(t, "answer", asked); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	asked = async(func() error {
		_, err := sst.QueryStat(ctx, streamName(t), sst.StatConfig{Session: quickSession(t), Wait: time.Hour})
		return err
	})
	hurry := errors.New("hurry")
	cancel(hurry)
	if err := next(t, "end of the wait", asked); !errors.Is(err, hurry) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestQueryStatHostile has a writer that answers as it should not.
func TestQueryStatHostile(t *testing.T) {
	text := func(s string) sstmsg.Blob { return sstmsg.ByteBlob([]byte(s)) }
	answer := func(blob sstmsg.Blob) func(p *fake, h heard) {
		return func(p *fake, h heard) {
			p.send(h.link, &sstmsg.StatReply{Condition: h.msg.(*sstmsg.StatQuery).Condition, Text: blob})
		}
	}
	silent := errors.New("silent")
	for name, c := range map[string]struct {
		do   func(p *fake, h heard)
		want error
	}{
		"no JSON":            {answer(text("hello")), sst.ErrProtocol},
		"half an object":     {answer(text(`{"next_step":1`)), sst.ErrProtocol},
		"other types":        {answer(text(`{"next_step":"many"}`)), sst.ErrProtocol},
		"negative":           {answer(text(`{"next_step":-1}`)), sst.ErrProtocol},
		"deep":               {answer(text(strings.Repeat("[", 200<<10))), sst.ErrProtocol},
		"too long":           {answer(text(strings.Repeat(" ", 256<<10+1))), sst.ErrWriterFailed},
		"nothing":            {answer(nil), sst.ErrClosed},
		"unknown things too": {answer(text(`{"next_step":1,"new":{"a":[1,2]},"readers":[{"addr":"x","news":1}]}`)), nil},
		"drops":              {func(_ *fake, h heard) { h.link.Abort(nil) }, sst.ErrWriterFailed},
		"answers another question": {func(p *fake, h heard) {
			p.send(h.link, &sstmsg.StatReply{Condition: h.msg.(*sstmsg.StatQuery).Condition ^ 1, Text: text(`{}`)})
		}, silent},
		"says nothing": {func(*fake, heard) {}, silent},
		"answers twice": {func(p *fake, h heard) {
			answer(text(`{}`))(p, h)
			answer(text(`hello`))(p, h)
		}, nil},
		"speaks of other things": {func(p *fake, h heard) { p.send(h.link, &sstmsg.WriterClose{ReaderID: 1}) }, sst.ErrWriterFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, p := streamName(t), newFake(t)
			p.publish(stream, 7, true)
			limit := patience
			if c.want == silent {
				limit, c.want = 100*time.Millisecond, sst.ErrTimeout
			}
			asked := async(func() error {
				_, err := sst.QueryStat(bounded(t), stream, sst.StatConfig{Session: quickSession(t), Timeout: limit})
				return err
			})
			h := next(t, "question", p.got)
			if q := h.msg.(*sstmsg.StatQuery); q.WriterID != 7 || q.Condition <= 0 || q.What != sstmsg.StatAll {
				t.Errorf("question %+v", q)
			}
			c.do(p, h)
			if err := next(t, "answer", asked); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			p.dropped() // who asks closes the connection, whatever came
		})
	}
}

// TestStatQuestionsOfStrangers: who asks for a stream that is not there is
// dropped; who answers what was not asked is not heard.
func TestStatQuestionsOfStrangers(t *testing.T) {
	v := newVictim(t)
	r := dials(t, v.name)
	r.send(r.link, &sstmsg.StatReply{Condition: 1, Text: sstmsg.ByteBlob([]byte(`{}`))})
	r.send(r.link, &sstmsg.StatQuery{WriterID: r.stream, Condition: -5, What: 1234})
	if _, m := hear[*sstmsg.StatReply](r.fake); m.Condition != -5 || m.Text.Len() == 0 {
		t.Errorf("a question of the future is answered %+v", m)
	}
	r.send(r.link, &sstmsg.StatQuery{WriterID: r.stream + 1, Condition: 1})
	r.dropped()
	v.unharmed(t)
}

// TestQueryStatAfterClose uses a session that is closed, or closes.
func TestQueryStatAfterClose(t *testing.T) {
	name, p := streamName(t), newFake(t)
	p.publish(name, 7, true)
	s := quickSession(t)
	asked := async(func() error {
		_, err := sst.QueryStat(bounded(t), name, sst.StatConfig{Session: s, Timeout: patience})
		return err
	})
	next(t, "question", p.got)
	s.Close()
	if err := next(t, "end", asked); err == nil {
		t.Error("an answer of nobody")
	}
	if _, err := sst.QueryStat(bounded(t), name, sst.StatConfig{Session: s}); err == nil {
		t.Error("a closed session asks")
	}
}

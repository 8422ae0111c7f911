package sst_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// TestReaderRankOutOfReach: a writer that cannot push to a rank of a reader drops
// that reader, and every rank of it ends with the reason.
func TestReaderRankOutOfReach(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	r := local(t, 2)
	r.sessions[1] = newSession(t, sst.SessionConfig{AdvertiseAddr: netip.MustParseAddr("255.255.255.255")})
	for rank, err := range r.open(bounded(t), name, all(sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "On", DataTransport: "evpath"}})) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	good := attach(t, name, sst.ReaderConfig{})
	x.must(t)
	r.each(t, func(rank int, r *sst.Reader) error {
		_, err := drain(bounded(t), r)
		if !errors.Is(err, sst.ErrWriterFailed) || !strings.Contains(err.Error(), "reader rank 1") {
			return fmt.Errorf("ended with %w", err)
		}
		return nil
	})
	r.close(t)
	finished := async(x.w.Close)
	if seen, err := drain(bounded(t), good); err != nil || len(seen) != 1 {
		t.Errorf("the other reader saw steps %v: %v", seen, err)
	}
	if err := next(t, "Close", finished); err != nil {
		t.Error(err)
	}
}

// TestDroppedWithAReason drops readers that break the rules, on connections that
// they share with another stream: Weft's are told and keep theirs.
func TestDroppedWithAReason(t *testing.T) {
	for _, weft := range []bool{true, false} {
		t.Run(fmt.Sprint("weft ", weft), func(t *testing.T) {
			log, logger := testutil.NewLog(slog.LevelInfo)
			s := newSession(t, sst.SessionConfig{Logger: logger})
			bad := attachesAs(t, create(t, streamName(t), sst.WriterConfig{Session: s}).Name(), 1, weft, false)
			other := create(t, streamName(t), sst.WriterConfig{Session: s})
			stream, _ := readContact(t, other.Name())
			good := &fakeReader{fake: bad.fake, link: bad.link, stream: stream}
			m := good.registration()
			m.CP[0].ReaderID++
			good.sendAs(m, weft)
			_, good.response = hear[*sstmsg.WriterResponse](good.fake)
			good.activate()

			bad.send(bad.link, &sstmsg.ReaderRequestStep{WriterID: bad.wsr()}) // which is for another mode
			if weft {
				_, m := hear[*sstmsg.WriterClose](bad.fake)
				if m.ReaderID != fakeControl || m.Code != sstmsg.CloseFailed || !strings.Contains(m.Reason, "ReaderRequestStep") {
					t.Errorf("%+v", m)
				}
				good.query()
			} else {
				bad.dropped()
			}
			next(t, "line of log", log.Lines())
			if !weft { // the other stream's, in any order
				next(t, "line of log", log.Lines())
			}
			if line := log.String(); strings.Contains(line, `lose the connection with it"=1`) == weft {
				t.Errorf("the log says %q", line)
			}
		})
	}
}

// TestTurnedAwayWhileOpening: a Weft writer that gives a reader up before it has
// answered it says so, and Open fails with that.
func TestTurnedAwayWhileOpening(t *testing.T) {
	for _, c := range []struct {
		code int32
		want error
	}{{sstmsg.CloseFailed, sst.ErrWriterFailed}, {sstmsg.CloseNormal, sst.ErrTimeout}} {
		name := streamName(t)
		p := newFake(t)
		p.publish(name, 77, true)
		opened := async(func() error {
			_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
			return err
		})
		l, q := hear[*sstmsg.DPQuery](p)
		p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: "evpath"})
		_, m := hear[*sstmsg.ReaderRegister](p)
		(&fakeReader{fake: p, link: l}).sendAs(&sstmsg.WriterClose{ReaderID: m.CP[0].ReaderID, Code: c.code, Reason: "no more"}, true)
		if err := next(t, "Open", opened); !errors.Is(err, c.want) {
			t.Errorf("code %d: %v", c.code, err)
		}
	}
}

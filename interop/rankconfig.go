package interop

import (
	"context"
	"slices"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

func writerConfig(s *sst.Session, p sst.Params, c cohort.Cohort, o WriterOptions) sst.WriterConfig {
	return sst.WriterConfig{Session: s, Params: p, Cohort: c, ContactMode: o.ContactMode}
}

func readerConfig(s *sst.Session, p sst.Params, c cohort.Cohort, o ReaderOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Session: s, Params: p, Cohort: c, Observer: o.Observer}
}

// session opens a session of a rank if several streams are to share it, or if it must not
// be as the stream's own would be; else it returns nil. end closes it.
func (s Stream) session(ctx context.Context, p sst.Params, rank int, shared bool) (session *sst.Session, end func(), err error) {
	denied := s.NoSharedMemory || slices.Contains(s.DeniedRanks, rank)
	if !shared && !denied {
		return nil, func() {}, nil
	}
	session, err = sst.NewSession(ctx, sst.SessionConfig{NetworkInterface: p.NetworkInterface, NoSharedMemory: denied})
	if err != nil {
		return nil, nil, err
	}
	return session, func() { session.Close() }, nil
}

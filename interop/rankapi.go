package interop

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// meeting says how the ranks of a cohort find each other.
type meeting struct{ Root, Token string }

func newMeeting(t testing.TB, dir string, size int) meeting { return meeting{} }

// one is a cohort of one rank.
type one struct{}

func (one) Rank() int                                           { return 0 }
func (one) Size() int                                           { return 1 }
func (one) Join(string, cohort.Handler) (cohort.Channel, error) { return nil, nil }
func (one) Close() error                                        { return nil }

func (j rankJob) join(ctx context.Context) ([]cohort.Cohort, error) {
	if j.Size > 1 {
		return nil, fmt.Errorf("cohort of %d", j.Size)
	}
	return []cohort.Cohort{one{}}, nil
}

func writerConfig(p sst.Params, c cohort.Cohort) sst.WriterConfig {
	return sst.WriterConfig{Params: p}
}

func readerConfig(p sst.Params, c cohort.Cohort, o ReaderOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Params: p}
}

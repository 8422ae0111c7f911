package interop

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/weft-fabric/weft/sst/cohort"
)

// meeting says how the processes of a cohort find each other.
type meeting struct{ Root, Token string }

// newMeeting chooses a free address and a token.
func newMeeting(t testing.TB) meeting {
	t.Helper()
	return meeting{Root: freePort(t), Token: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())}
}

// join joins the ranks of this process to their cohort.
func (j rankJob) join(ctx context.Context) ([]cohort.Cohort, error) {
	switch {
	case j.Local:
		return cohort.Local(j.Size), nil
	case j.Size == 1:
		return []cohort.Cohort{cohort.Solo()}, nil
	}
	c, err := cohort.TCP(ctx, cohort.TCPConfig{
		Root: j.Meet.Root, Rank: j.Rank, Size: j.Size, Token: j.Meet.Token,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	return []cohort.Cohort{c}, nil
}

package interop

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"testing"

	"github.com/weft-fabric/weft/sst/cohort"
)

// meeting says how the processes of a cohort find each other.
type meeting struct{ Root, Token string }

// newMeeting chooses a free address and a token. The port lies below those that
// the kernel gives to whoever asks for none, so that nobody takes it meanwhile.
func newMeeting(t testing.TB) meeting {
	t.Helper()
	for range 100 {
		root := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		l, err := net.Listen("tcp4", root)
		if err != nil {
			continue
		}
		l.Close()
		return meeting{Root: root, Token: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())}
	}
	t.Fatal("no free port")
	return meeting{}
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

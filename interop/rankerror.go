package interop

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// sentinels are the errors of a stream, by the names that a line FAILED has.
var sentinels = []struct {
	name string
	err  error
}{
	{"ErrClosed", sst.ErrClosed}, {"ErrOrder", sst.ErrOrder}, {"ErrTimeout", sst.ErrTimeout}, {"ErrNoStream", sst.ErrNoStream},
	{"ErrStale", sst.ErrStale}, {"ErrContact", sst.ErrContact}, {"ErrPlane", sst.ErrPlane}, {"ErrMarshal", sst.ErrMarshal},
	{"ErrWriterFailed", sst.ErrWriterFailed}, {"ErrReaderFailed", sst.ErrReaderFailed}, {"ErrRankFailed", sst.ErrRankFailed},
	{"ErrEvicted", sst.ErrEvicted}, {"ErrStepAborted", sst.ErrStepAborted}, {"ErrParam", sst.ErrParam}, {"ErrProtocol", sst.ErrProtocol},
	{"ErrRankGone", cohort.ErrRankGone}, {"ErrRefused", cohort.ErrRefused}, {"DeadlineExceeded", context.DeadlineExceeded},
}

// describeError renders an error as the names of its sentinels, and its text in
// one line.
func describeError(err error) string {
	var names []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ",") + ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// parseFailure undoes describeError.
func parseFailure(text string) (names []string, message string) {
	list, message, _ := strings.Cut(text, ": ")
	if list != "" {
		names = strings.Split(list, ",")
	}
	slices.Sort(names)
	return names, message
}

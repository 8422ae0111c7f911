package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/weft-fabric/weft/internal/testutil"
	_ "github.com/weft-fabric/weft/prov/shm" // Weft sides of this node look at each other's memory
	"github.com/weft-fabric/weft/sst/cohort"
)

// rankRole is the role in which the test binary is a rank of a Weft cohort.
const rankRole = "weft-rank"

// Roles are the roles that a test binary must know to start Weft cohorts
// ([WeftWriter], [WeftReader]): give them to testutil.Main.
func Roles() []testutil.Role {
	return []testutil.Role{{Name: rankRole, Run: runRankRole}, {Name: pairRole, Run: runPairRole}, {Name: busyRole, Run: runBusyRole}, {Name: viewRole, Run: runViewRole}, {Name: serverRole, Run: runServer}, {Name: clientRole, Run: runClient}}
}

// rankJob is what a process of a Weft cohort is told, as JSON.
type rankJob struct {
	Name  string // of the stream, a path
	Rank  int    // of this process; with Local unused
	Size  int    // of the cohort
	Local bool   // this process runs all ranks, as goroutines
	Meet  meeting
	// One of them is set.
	Writer *WriterOptions `json:",omitempty"`
	Reader *ReaderOptions `json:",omitempty"`
}

// Exit codes of a rank; any other error of the process is 1.
const (
	exitFailed   = 3 // an operation on the stream failed: the line FAILED says how
	exitMismatch = 4 // what was read was wrong: the lines MISMATCH say what
	exitLeak     = 5 // all went well, but something stayed behind
)

// runRankRole is the main of a rank.
func runRankRole(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, got %d", len(args))
	}
	var job rankJob
	if err := json.Unmarshal([]byte(args[0]), &job); err != nil {
		return err
	}
	ctl := newControl(job.members())
	return endRank(takeCounts(), job.run(context.Background(), ctl))
}

// endRank says how a process has ended, and exits unless all went well and nothing was
// left of what was not there before.
func endRank(before counts, err error) error {
	switch {
	case errors.Is(err, errMismatch):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitMismatch)
	case err != nil:
		say("FAILED", describeError(err))
		fmt.Fprintln(os.Stderr, err)
	}
	// A rank whose stream has failed must not leave anything either.
	if left := before.left(); left != "" {
		say("LEAK", left)
		os.Exit(exitLeak)
	}
	if err != nil {
		os.Exit(exitFailed)
	}
	return nil
}

// members is the number of ranks that run in this process.
func (j rankJob) members() int {
	if j.Local {
		return j.Size
	}
	return 1
}

// run plays the ranks of this process, and leaves their cohort.
func (j rankJob) run(ctx context.Context, ctl *control) error {
	ends, err := j.join(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(ends))
	var wg sync.WaitGroup
	for i, c := range ends {
		wg.Go(func() {
			errs[i] = j.play(ctx, c, ctl.member(i))
			if errs[i] != nil {
				errs[i] = fmt.Errorf("rank %d: %w", c.Rank(), errs[i])
			}
		})
	}
	wg.Wait()
	for _, c := range ends {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (j rankJob) play(ctx context.Context, c cohort.Cohort, ctl member) error {
	if j.Writer != nil {
		return rankWriter{j.Name, *j.Writer, c, ctl}.run(ctx)
	}
	return (&rankReader{name: j.Name, o: *j.Reader, cohort: c, ctl: ctl}).run(ctx)
}

// sayLock keeps lines of the goroutines of a process whole.
var sayLock sync.Mutex

// say writes a line to stdout.
func say(words ...any) {
	sayLock.Lock()
	defer sayLock.Unlock()
	fmt.Println(words...)
}

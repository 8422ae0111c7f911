package ping

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// version is that of the control messages. Both sides must have the same.
const version = 2

// controlMax bounds a control message, in bytes.
const controlMax = 8 << 10

// controlTag and dataTag are the tags of messages; op message has none.
const (
	controlTag = 0x57454654
	dataTag    = controlTag + 1
	helloTag   = controlTag + 2 // of hello, which may come while another one is served
)

// control is a message of one side to the other. Measure says hello, which is
// answered by welcome; then for each size and phase it says job, the peer ready; both
// work; the peer says all here where Measure has to know when the last operation
// arrived; Measure says end, the peer done; and at last Measure says bye.
type control struct {
	Verb    verb           `json:"verb"`
	Version int            `json:"version,omitempty"` // hello
	Pin     Pin            `json:"pin,omitempty"`     // hello: where both sides run
	Address fabric.Address `json:"address,omitempty"` // hello: of who says it
	Job     *job           `json:"job,omitempty"`     // job
	Key     fabric.Key     `json:"key,omitempty"`     // job, ready: of the memory that the other side may use
	CPU     float64        `json:"cpu,omitempty"`     // done: seconds of processor time since ready
	Error   string         `json:"error,omitempty"`   // any: the sender gives up, and why
}

type verb string

const (
	hello   verb = "hello"
	welcome verb = "welcome"
	setJob  verb = "job"
	ready   verb = "ready"
	allHere verb = "all here"
	endJob  verb = "end"
	done    verb = "done"
	bye     verb = "bye"
)

// job is one phase at one size.
type job struct {
	Op    Op    `json:"op"`
	Phase Phase `json:"phase"`
	Size  int   `json:"size"`  // bytes of an operation
	Warm  int   `json:"warm"`  // operations before those that count
	Iters int   `json:"iters"` // that count
	Slots int   `json:"slots"` // outstanding at once
	// Pause is what passes before each operation, in nanoseconds. The peer knows by it that nobody has stopped.
	Pause time.Duration `json:"pause,omitempty"`
}

func newJob(w Work, p Phase, size int) job {
	n := w.iters(size)
	j := job{Op: w.Op, Phase: p, Size: size, Warm: min(n/10+1, 1000), Iters: n, Slots: slots(p, w.Op, size)}
	if p == Latency {
		j.Pause = w.Pause
	}
	return j
}

// text says what is done.
func (j *job) text() string {
	return fmt.Sprintf("the %s phase of %d times %s of %d bytes", j.Phase, j.Iters, j.Op, j.Size)
}

// total is the number of operations.
func (j *job) total() int { return j.Warm + j.Iters }

// ErrProtocol is what the other side says against the rules.
var ErrProtocol = errors.New("ping: the other side is no weft ping of this version")

// errBusy is what another one gets that says hello meanwhile.
var errBusy = errors.New("ping: busy with another weft ping")

// errPin refuses what is no measurement of the one nor of the other.
var errPin = errors.New("ping: both sides need the same --pin")

// errNo wraps what the other side gives as the reason why it gives up.
var errNo = errors.New("ping: the other side gives up")

// parseControl reads and checks a control message; want is the one that it must be.
func parseControl(b []byte, want ...verb) (control, error) {
	var c control
	if err := json.Unmarshal(b, &c); err != nil {
		return control{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if c.Error != "" {
		return control{}, fmt.Errorf("%w: %.500q", errNo, strings.ReplaceAll(c.Error, "\n", "; ")) // joined errors
	}
	switch {
	case !slices.Contains(want, c.Verb):
		return control{}, fmt.Errorf("%w: it says %.20q instead of %q", ErrProtocol, c.Verb, want)
	case c.Verb == hello && c.Version != version:
		return control{}, fmt.Errorf("%w: version %d instead of %d", ErrProtocol, c.Version, version)
	case c.Verb == hello && c.Address == "":
		return control{}, fmt.Errorf("%w: hello without an address", ErrProtocol)
	case c.Verb == setJob:
		return c, c.Job.check()
	}
	return c, nil
}

// check bounds what the other side asks for.
func (j *job) check() error {
	if j == nil {
		return fmt.Errorf("%w: no job", ErrProtocol)
	}
	w := Work{Op: j.Op, Sizes: []int{j.Size}, Iters: j.Iters, Only: j.Phase, Pause: j.Pause}
	if _, err := w.resolve(); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if j.Op == "" || j.Phase == "" || j.Iters < 1 || j.Warm < 0 || j.Warm > MaxIters || j.Slots != slots(j.Phase, j.Op, j.Size) {
		return fmt.Errorf("%w: a job of %+v", ErrProtocol, *j)
	}
	return nil
}

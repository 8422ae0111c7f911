package ping

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// Op is the operation that is measured.
type Op string

// The operations.
const (
	// Message and Tagged go to and fro.
	Message Op = "message"
	Tagged  Op = "tagged"
	// Read reads memory of the peer.
	Read Op = "read"
	// Write writes to and fro with remote data, for the latency, and into the peer alone, for the rates.
	Write Op = "write"
	// View looks at memory of the peer in place.
	View Op = "view"
)

// Ops are all operations.
var Ops = []Op{Message, Tagged, Read, Write, View}

// Answered are those whose operations of the latency phase the peer answers, each by one of its own.
var Answered = []Op{Message, Tagged, Write}

// echoes says whether the peer answers.
func (o Op) echoes() bool { return slices.Contains(Answered, o) }

// caps is what a provider must offer. Control messages are tagged ones.
func (o Op) caps() fabric.Caps {
	return fabric.Tagged | map[Op]fabric.Caps{
		Message: fabric.Msg, Read: fabric.RMA, Write: fabric.RMA | fabric.RemoteCQData, View: fabric.RMA | fabric.Views,
	}[o]
}

// Wait is how a side waits for completions.
type Wait string

// The ways to wait.
const (
	Ladder Wait = ""      // as CompletionQueue.Wait does by itself: it polls for a short time, and then sleeps
	Spin   Wait = "spin"  // polls, and never sleeps
	Sleep  Wait = "sleep" // sleeps in CompletionQueue.Wait, without polling
)

// Waits are all ways that have a name.
var Waits = []Wait{Spin, Sleep}

// Config says how a side is. Both sides have one.
type Config struct {
	Provider string          // its name; "" takes the first that offers the operation
	Name     string          // of the endpoint; "" is a random one
	Wait     Wait            // how it waits
	Progress fabric.Progress // who drives the domain
	Pin      Pin             // where both sides run, as the caller has seen to; of the other side it must be the same
	Logger   *slog.Logger    // told of waits of more than 3 s; nil discards
	// Options are the provider's own, for the domain of this side.
	Options map[string]string
	// Inside says that the other side is in this process: processor time is counted by Measure alone.
	Inside bool
	// Begun is called by Measure when the other side has answered, before anything is measured; an error of it ends the
	// work. It may be nil.
	Begun func() error
}

// Phase is a part of the measurement.
type Phase string

// The phases.
const (
	Latency Phase = "latency" // one operation after the other
	Rate    Phase = "rate"    // as many at once as there are places
)

// Work says what is measured.
type Work struct {
	Op    Op    // "" is Message
	Sizes []int // in bytes, each measured by itself
	Iters int   // of each phase, after warming up; 0 is a number that suits the size, and the pause
	Only  Phase // this phase alone; without Rate, the rates are those of the latency phase
	// Pause is a time in which nothing is done before each operation of the latency phase, so that a peer that waits falls
	// asleep. It is part of no latency and no rate. Only operations that are answered have it.
	Pause time.Duration
}

// Bounds of what is measured, so that nobody fills a machine by a typing error.
const (
	MaxSize  = 1 << 30
	MaxIters = 10_000_000
	maxSlots = 64
)

// slotBytes bounds what is outstanding at once, where more than one is. Tests change it.
var slotBytes = 128 << 20

// ErrConfig refuses what cannot be measured.
var ErrConfig = errors.New("ping: wrong settings")

// asSetting makes an error of a name or an address that the caller gave one of its settings, with the same words.
func asSetting(err error) error {
	if errors.Is(err, fabric.ErrInvalid) {
		return setting{err}
	}
	return err
}

type setting struct{ error }

func (s setting) Is(target error) bool { return target == ErrConfig }
func (s setting) Unwrap() error        { return s.error }

// resolve gives checked work with all its defaults.
func (w Work) resolve() (Work, error) {
	if w.Op == "" {
		w.Op = Message
	}
	switch {
	case !slices.Contains(Ops, w.Op):
		return w, fmt.Errorf("%w: no operation is called %q", ErrConfig, w.Op)
	case len(w.Sizes) == 0:
		return w, fmt.Errorf("%w: no size", ErrConfig)
	case w.Iters < 0 || w.Iters > MaxIters:
		return w, fmt.Errorf("%w: %d iterations, 1 to %d", ErrConfig, w.Iters, MaxIters)
	case w.Only != "" && w.Only != Latency && w.Only != Rate:
		return w, fmt.Errorf("%w: no phase is called %q", ErrConfig, w.Only)
	case w.Pause < 0 || w.Pause > MaxPause:
		return w, fmt.Errorf("%w: a pause of %v, up to %v", ErrConfig, w.Pause, MaxPause)
	case w.Pause > 0 && !w.Op.echoes():
		return w, fmt.Errorf("%w: nobody waits for a %s while there is a pause", ErrConfig, w.Op)
	case w.Pause > 0 && w.Only == Rate:
		return w, fmt.Errorf("%w: the %s phase has no pause", ErrConfig, Rate)
	}
	for _, n := range w.Sizes {
		least := 1
		if w.Op == Message || w.Op == Tagged {
			least = 0
		}
		if n < least || n > MaxSize {
			return w, fmt.Errorf("%w: size %d of a %s, %d to %d bytes", ErrConfig, n, w.Op, least, MaxSize)
		}
	}
	return w, nil
}

// iters is how often an operation of n bytes is done: some 10 000 times if it is
// small, for some GiB if it is not, and not so often that the pauses take more than
// some seconds.
func (w Work) iters(n int) int {
	if w.Iters > 0 {
		return w.Iters
	}
	const small, few, volume, pausing = 20_000, 20, 2 << 30, 2 * time.Second
	most := small
	if w.Pause > 0 {
		most = min(max(int(pausing/w.Pause), few), small)
	}
	return min(max(volume/max(n, 1), few), most)
}

// slots is how many operations of n bytes are outstanding in a phase.
func slots(p Phase, op Op, n int) int {
	if p == Latency && op.echoes() && n <= slotBytes {
		return 2 // one is on its way, the place of the next one is ready
	}
	return min(max(slotBytes/max(n, 1), 1), maxSlots)
}

// ErrSize refuses a size.
var ErrSize = errors.New("ping: a size is a number of bytes, or of KiB, MiB or GiB as 64K, 1M, 1G (or 64k, 64KiB)")

// ParseSizes reads a list of sizes, such as "8,64K,1MiB".
func ParseSizes(text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := parseSize(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func parseSize(word string) (int, error) {
	digits := strings.TrimRightFunc(word, func(r rune) bool { return r < '0' || r > '9' })
	shift, ok := map[string]int{
		"": 0, "b": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30,
	}[strings.ToLower(strings.TrimSpace(word[len(digits):]))]
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil || n > MaxSize>>shift {
		return 0, fmt.Errorf("%w, up to 1G: not %q", ErrSize, word)
	}
	return int(n) << shift, nil
}

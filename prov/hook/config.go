package hook

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Config says what a hook does. The zero value counts, and changes nothing.
type Config struct {
	Name   string            // of the wrapped provider; "" means that of the provider itself
	Tracer *provider.Tracer  // hears of events besides the tracer of the domain
	Logger *slog.Logger      // gets every event; see Log; nil does not
	Seed   uint64            // the decisions of rules with a Chance come from it
	Rules  []Rule            // the faults
	Open   map[string]string // provider options for every domain, over its own; the lists "disable" and "fail" are joined with its own
}

// Point is a set of places where a rule may act.
type Point uint32

// The places. A rule at Done acts when completions are handed to the program.
const (
	Send Point = 1 << iota
	Recv
	SendTagged
	RecvTagged
	Read
	Write
	Atomic
	Done
	Alloc
	Register
	View
	Insert
	OpenEndpoint
	OpenDomain

	// Posts are all operations, Starts those that this side starts.
	Posts  = Send | Recv | SendTagged | RecvTagged | Read | Write | Atomic
	Starts = Send | SendTagged | Read | Write | Atomic
)

// calls are what a rule may refuse but not drop.
const calls = Alloc | Register | View | Insert | OpenEndpoint | OpenDomain

// everywhere has all places.
const everywhere = Posts | Done | calls

// Rule is one fault: where, when, what.
type Rule struct {
	At Point

	After  uint64  // lets so many pass first
	Count  uint64  // then acts at most so many times; 0 means without end
	Chance float64 // acts on a part of them only; 0 means on all

	Delay time.Duration // holds the call up for so long, then goes on
	// Err refuses the call. After ErrAgain the next wait of the queue returns, without a completion, as after a real one.
	Err error
	// Drop takes a post and does nothing with it. It ends when it is cancelled, its peer removed or its endpoint closed. At most
	// 1024 are held for an endpoint; more pass.
	Drop bool
	// Kill makes the peer of the post look dead from here: what is outstanding towards it, and all that follows, ends with
	// ErrPeerGone. Inserted again, its address is a new peer, which lives. The peer itself sees that it was removed.
	Kill bool
}

// held is how many dropped posts an endpoint keeps.
const held = 1024

// check says what is wrong with a configuration.
func (c *Config) check() error {
	for i, r := range c.Rules {
		actions := 0
		for _, on := range []bool{r.Delay != 0, r.Err != nil, r.Drop, r.Kill} {
			if on {
				actions++
			}
		}
		wrong := ""
		switch {
		case r.At == 0:
			wrong = "it acts nowhere"
		case r.At&^everywhere != 0:
			wrong = fmt.Sprintf("there is no place %#x", uint32(r.At&^everywhere))
		case actions != 1:
			wrong = "it has not exactly one of Delay, Err, Drop and Kill"
		case r.Delay < 0:
			wrong = "a negative delay"
		case r.Chance < 0 || r.Chance > 1:
			wrong = "a chance is between 0 and 1"
		case r.Err != nil && r.At&^(Posts|calls) != 0:
			wrong = "a completion cannot be refused"
		case r.Drop && r.At&^Posts != 0:
			wrong = "only posts can be dropped"
		case r.Kill && r.At&^Starts != 0:
			wrong = "only an operation that this side starts has a peer to kill"
		case r.At&calls != 0 && errors.Is(r.Err, provider.ErrAgain):
			wrong = "only a post can be tried again"
		}
		if wrong != "" {
			return fmt.Errorf("rule %d: %s: %w", i, wrong, provider.ErrInvalid)
		}
	}
	return nil
}

// makes says whether the hook makes completions, or room for posts, of its own, so that waiters must hear of it.
func (c *Config) makes() bool {
	for _, r := range c.Rules {
		if r.Drop || errors.Is(r.Err, provider.ErrAgain) {
			return true
		}
	}
	return false
}

// lists are options that every provider understands in the same way, if it has them: features of the kernel that are not used, and
// calls of the kernel that fail, as "memfd@3" for the third.
var lists = []string{"disable", "fail"}

// options merges the provider options of the hook into those of a domain.
func (c *Config) options(own map[string]string) map[string]string {
	if len(c.Open) == 0 {
		return own
	}
	all := make(map[string]string, len(own)+len(c.Open))
	for k, v := range own {
		all[k] = v
	}
	for k, v := range c.Open {
		if slices.Contains(lists, k) && all[k] != "" {
			v = strings.Join([]string{all[k], v}, ",")
		}
		all[k] = v
	}
	return all
}

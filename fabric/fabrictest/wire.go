package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weft-fabric/weft/fabric/provider"
)

// request is one thing that an agent is asked to do. Which fields count depends on the verb; the
// methods of side and agent that are named like it say it. It is JSON on its way to another process.
type request struct {
	Verb string
	Open *openSpec `json:",omitempty"`
	Op   *opSpec   `json:",omitempty"`
	Flow *flow     `json:",omitempty"`

	EP      int              `json:",omitempty"` // which endpoint
	Buf     int              `json:",omitempty"` // which buffer, counter or view
	Off     int              `json:",omitempty"`
	N       int              `json:",omitempty"`
	Seed    uint64           `json:",omitempty"`
	Bytes   []byte           `json:",omitempty"`
	Access  provider.Access  `json:",omitempty"`
	Peer    provider.Peer    `json:",omitempty"`
	Key     provider.Key     `json:",omitempty"`
	Address provider.Address `json:",omitempty"`
	Context uint64           `json:",omitempty"`
	Millis  int              `json:",omitempty"`
}

// reply is what an agent answers.
type reply struct {
	Err *failure `json:",omitempty"`

	N         int                `json:",omitempty"`
	Base      uint64             `json:",omitempty"`
	Bytes     []byte             `json:",omitempty"`
	Key       provider.Key       `json:",omitempty"`
	Peer      provider.Peer      `json:",omitempty"`
	Addresses []provider.Address `json:",omitempty"`
	Done      []done             `json:",omitempty"`
	Stats     *provider.Stats    `json:",omitempty"`
	Peers     []peerStats        `json:",omitempty"`
	Usage     *usage             `json:",omitempty"`
	Text      string             `json:",omitempty"`
}

// openSpec is how an agent opens its domain, with one queue and some endpoints.
type openSpec struct {
	Progress   provider.Progress
	Options    map[string]string `json:",omitempty"`
	Memory     uint64            `json:",omitempty"`
	Name       string            `json:",omitempty"`
	Endpoints  int               `json:",omitempty"` // 0 means 1
	Depth      int               `json:",omitempty"`
	Unexpected uint64            `json:",omitempty"`
	MinMulti   int               `json:",omitempty"`
	CQSize     int               `json:",omitempty"`
	Counters   bool              `json:",omitempty"`
	Way        way               `json:",omitempty"` // how completions are collected
	Log        bool              `json:",omitempty"` // what it logs is kept
}

// opSpec is an operation, its memory named by buffers of the agent.
type opSpec struct {
	Kind    provider.Kind
	Segs    []seg `json:",omitempty"`
	Peer    provider.Peer
	Key     provider.Key
	Offset  uint64
	Remotes []provider.RemoteSegment `json:",omitempty"`
	Tag     uint64
	Ignore  uint64
	Data    uint64
	Flags   provider.Flags
	Context uint64

	Code    provider.AtomicCode `json:",omitempty"`
	Type    provider.DataType   `json:",omitempty"`
	Compare *seg                `json:",omitempty"`
	Result  *seg                `json:",omitempty"`
}

// seg is a part of a buffer of the agent.
type seg struct {
	Buf, Off, N int
	Raw         bool // as raw bytes, although the buffer is registered memory
}

// done is a completion that may come from another process.
type done struct {
	provider.Completion
	Failure *failure `json:",omitempty"`
}

// peerStats is provider.PeerStats that may come from another process.
type peerStats struct {
	provider.PeerStats
	Failure *failure `json:",omitempty"`
}

// failure is an error on its way between processes: it keeps its identity and its peer.
type failure struct {
	Is       []int // places in sentinels
	IsOp     bool  // it is an OpError, with these fields
	Op       string
	Provider string
	Addr     provider.Address
	Nests    bool                     // an OpError within an OpError
	Short    *provider.TruncatedError `json:",omitempty"` // in it
	Text     string
}

// sentinels are the errors whose identity survives the way.
var sentinels = []error{
	provider.ErrAgain, provider.ErrClosed, provider.ErrCancelled, provider.ErrSignal, provider.ErrPeerGone,
	provider.ErrUnreachable, provider.ErrKey, provider.ErrTruncated, provider.ErrTooLong, provider.ErrNoMessage,
	provider.ErrNotSupported, provider.ErrInvalid, provider.ErrNoMemory, provider.ErrProtocol, provider.ErrBusy,
	context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded,
}

// pack makes an error fit for the way; nil stays nil.
func pack(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for i, s := range sentinels {
		if errors.Is(err, s) {
			f.Is = append(f.Is, i)
		}
	}
	if oe, ok := errors.AsType[*provider.OpError](err); ok {
		f.IsOp, f.Op, f.Provider, f.Addr = true, oe.Op, oe.Provider, oe.Addr
		_, f.Nests = errors.AsType[*provider.OpError](oe.Err)
	}
	f.Short, _ = errors.AsType[*provider.TruncatedError](err)
	return f
}

// err is the error again.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &travelled{f}
}

// nests says whether the error says twice what failed.
func (f *failure) nests() bool { return f != nil && f.Nests }

// travelled is an error that was packed. It says what the error said, and is an OpError if that was one.
type travelled struct{ f *failure }

func (t *travelled) Error() string { return t.f.Text }

// Is says whether it was target before it was packed.
func (t *travelled) Is(target error) bool {
	for _, i := range t.f.Is {
		if i < len(sentinels) && sentinels[i] == target {
			return true
		}
	}
	return false
}

// As gives the OpError that it was, or the TruncatedError in it. The cause of the first says more than it did, for it stands nowhere else.
func (t *travelled) As(target any) bool {
	if te, ok := target.(**provider.TruncatedError); ok && t.f.Short != nil {
		*te = t.f.Short
		return true
	}
	oe, ok := target.(**provider.OpError)
	if !ok || !t.f.IsOp {
		return false
	}
	cause := *t.f
	cause.IsOp = false
	*oe = &provider.OpError{Op: t.f.Op, Provider: t.f.Provider, Addr: t.f.Addr, Err: &travelled{&cause}}
	return true
}

// unpack gives a completion its error back.
func (d done) unpack() provider.Completion {
	c := d.Completion
	c.Err = d.Failure.err()
	return c
}

func packDone(c provider.Completion) done {
	d := done{Completion: c, Failure: pack(c.Err)}
	d.Err = nil
	return d
}

// show describes a completion in one line, for failures.
func show(c provider.Completion) string {
	return fmt.Sprintf("{ctx %d %v flags %v len %d off %d tag %#x data %#x source %v err %v}",
		c.Context, c.Kind, c.Flags, c.Len, c.Offset, c.Tag, c.Data, c.Source, c.Err)
}

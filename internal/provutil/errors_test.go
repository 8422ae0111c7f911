package provutil

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// An error names operation, provider and peer once, however often it is passed on.
func TestOpError(t *testing.T) {
	if OpError("send", "x", "x://a", nil) != nil {
		t.Error("no error became one")
	}
	cause := fmt.Errorf("%w: it has left", provider.ErrPeerGone)
	first := OpError("send", "x", "x://a", cause)
	if want := "x: send: peer x://a: fabric: peer is gone: it has left"; first.Error() != want {
		t.Errorf("%q, want %q", first, want)
	}
	for _, again := range []error{first, fmt.Errorf("so: %w", first), errors.Join(first)} {
		got := OpError("receive", "y", "", again)
		if got != again || !errors.Is(got, provider.ErrPeerGone) || strings.Count(got.Error(), "peer x://a") != 1 {
			t.Errorf("%v", got)
		}
	}
	if got := OpError("open", "x", "", provider.ErrBusy).Error(); got != "x: open: fabric: still in use" {
		t.Errorf("%q", got)
	}
}

// What a system that has no descriptors says of one is ErrNoMemory, what one without eventfd says ErrNotSupported, and the
// cause stays to be seen.
func TestNoBell(t *testing.T) {
	if err := noBell(syscall.EMFILE); !errors.Is(err, provider.ErrNoMemory) || !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	if err := noBell(sys.ErrNotSupported); !errors.Is(err, provider.ErrNotSupported) || errors.Is(err, provider.ErrNoMemory) {
		t.Error(err)
	}
}

// A bell that cannot be made leaves no descriptor (the end of the run looks), and can be made later.
func TestBellFails(t *testing.T) {
	if _, err := SystemBell(1 << 20); !errors.Is(err, provider.ErrNoMemory) {
		t.Errorf("a descriptor that there is not: %v", err)
	}
	broken := true
	e := rig(t, CoreConfig{Progress: provider.Manual, NewBell: func(engine int) (Bell, error) {
		if engine < 0 {
			t.Error("in manual mode the engine's descriptor is watched too")
		}
		if broken {
			return nil, provider.ErrNoMemory
		}
		return SystemBell(engine)
	}}, 2)
	if _, err := e.q.Descriptor(); !errors.Is(err, provider.ErrNoMemory) {
		t.Error(err)
	}
	if e.q.TryWait() {
		t.Error("waiting without a descriptor")
	}
	broken = false
	fd, err := e.q.Descriptor()
	if err != nil || fd < 0 {
		t.Fatal(fd, err)
	}
	if !e.q.TryWait() {
		t.Error("an empty queue")
	}
	for range 2 {
		if err := e.q.Close(); err != nil {
			t.Error(err)
		}
	}
	if e.q.TryWait() {
		t.Error("waiting for a closed queue")
	}
	var c [1]provider.Completion
	other, err := NewCQ(e.core, provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = other.Read(c[:]) // the closed one is not rung any more
	if n := len(e.core.ringers); n != 0 {
		t.Errorf("%d queues are waited for", n)
	}
	_ = e.fd.Close()
}

// What belongs to another domain, or to another provider, is refused.
func TestOwn(t *testing.T) {
	c, other := NewCore(&fake{}, CoreConfig{}), NewCore(&fake{}, CoreConfig{})
	n := NewCounter(other)
	if _, err := OwnCounter(c, n); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
	if own, err := OwnCounter(c, nil); own != nil || err != nil {
		t.Error(err)
	}
	if own, err := OwnCounter(other, n); own != n || err != nil {
		t.Error(err)
	}
	if _, err := OwnCQ(c, struct{ provider.CompletionQueue }{}); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
}

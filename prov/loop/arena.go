package loop

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// arena is memory that is there twice: to write for its owner, to read for its viewers. It goes with the last who
// uses it.
type arena struct {
	bytes    []byte
	readable []byte // the same, read-only; nil where views are not supported
	users    atomic.Int64
	unmap    func()
}

// Generation is the same as long as the owner uses it.
func (r *arena) Generation() uint64 { return 0 }

func (r *arena) retain() { r.users.Add(1) }

func (r *arena) release() {
	if r.users.Add(-1) == 0 && r.unmap != nil {
		r.unmap()
	}
}

// newArena makes one with one user.
func newArena(n int) (*arena, error) {
	r := &arena{bytes: make([]byte, n)}
	r.users.Store(1)
	return r, nil
}

func viewsFeature() provider.Feature {
	return provider.Feature{Name: "views", Detail: "memory cannot be mapped twice here"}
}

var newBell func(engine int) (provutil.Bell, error)

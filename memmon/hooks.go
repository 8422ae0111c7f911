package memmon

import (
	"log/slog"
	"strings"

	"github.com/weft-fabric/weft/internal/hooks"
)

// findHooks looks, once, for those who have changed the memory functions of the C library, and says what follows. Weft never adds hooks to
// them: who comes second makes the first one deaf. The caller has the turn.
func (a *Arbiter) findHooks(said *notes) {
	if a.looked {
		return
	}
	a.looked = true
	find := a.find
	if find == nil {
		find = hooks.Find
	}
	r, err := find()
	lines := r.Lines()
	a.mu.Lock()
	a.status.Hooks, a.status.HooksErr = lines, err
	a.mu.Unlock()
	if len(lines) > 0 {
		said.add(slog.LevelInfo, "others have hooked memory functions of the C library; Weft leaves them alone",
			slog.String("hooks", strings.Join(lines, "; ")), slog.String("follows", a.follows()))
	}
}

// follows says what hooks of others mean for the caches.
func (a *Arbiter) follows() string {
	s := a.serving.Load()
	switch {
	case s == nil:
		return "nothing: no monitor serves, so memory that has no owner is registered for each operation. The hooks can tell of events (weft_memory_events.h) and be imported"
	case a.imported:
		return s.monitor.Name() + " serves"
	}
	return s.monitor.Name() + " serves, which the hooks do not concern"
}

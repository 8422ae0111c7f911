package memmon

import (
	"context"
	"log/slog"
)

// notes are what is to be logged when no lock is held any more: a handler may do anything, also open a domain, whose cache attaches.
type notes []func(*slog.Logger)

func (n *notes) add(level slog.Level, text string, attrs ...slog.Attr) {
	*n = append(*n, func(log *slog.Logger) { log.LogAttrs(context.Background(), level, text, attrs...) })
}

func (n *notes) tell(log *slog.Logger) {
	for _, f := range *n {
		f(log)
	}
}

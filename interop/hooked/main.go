// The program hooked says which memory functions of the C library in its own process are hooked. It is built with the C library, which package
// net uses if it may, so that a test can load hooks into it; there is no C in it.
package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	_ "net" // uses the C library
	"os"
	"strings"

	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/memmon"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hooked:", err)
		os.Exit(1)
	}
}

// run prints what was found, and what memmon has of it: its lines and its log.
func run() error {
	report, err := hooks.Find()
	if err != nil {
		return err
	}
	var log strings.Builder
	a := memmon.Process()
	detach := a.Attach(func(memmon.Range) {}, slog.New(slog.NewTextHandler(&log, nil)))
	defer detach()
	s := a.Status()
	if s.HooksErr != nil {
		return s.HooksErr
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": report, "lines": s.Hooks, "log": log.String()})
}

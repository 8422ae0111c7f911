package cp

import (
	"fmt"
	"slices"
	"strings"
)

// Data planes by name. Others are ADIOS2's, which Weft has not.
const (
	PlaneEvpath = "evpath" // by messages: the one that everybody has
	PlaneNative = "native" // a look at the writer's memory, docs/native.md
	PlaneMixed  = "mixed"  // native where that works, else by messages; nobody asks for it
)

// PlaneEnded is the data plane that a Weft writer names when the stream has
// ended: to a query, and, if the reader is Weft too, to a registration. ADIOS2
// has no word for it.
const PlaneEnded = "ended"

// ChoosePlane returns what a writer answers to a DPQuery: of the planes that the
// reader names, with commas in between, the first that the writer serves. Who names
// none has evpath. If there is none in common, ok is false, and plane what the
// writer, which serves at least one, likes best: the reader says what is wrong.
func ChoosePlane(reader string, writer []string) (plane string, ok bool) {
	if reader == "" {
		reader = PlaneEvpath
	}
	for p := range strings.SplitSeq(reader, ",") {
		if slices.Contains(writer, p) {
			return p, true
		}
	}
	return writer[0], false
}

// PlaneError says that the writer serves a data plane that this reader lacks.
type PlaneError struct {
	Writer string   // what the writer chose: its best, if none is in common
	Ours   []string // what we have
	Weft   bool     // the writer is Weft
}

// Error names both sides and the cure.
func (e *PlaneError) Error() string {
	return fmt.Sprintf("the writer serves the data plane %q, this reader has %q; %s", e.Writer, e.Ours, e.cure())
}

// cure says what helps. A Weft reader without evpath was told so, by DataTransport or
// ManualProgress; a Weft writer without native was told so, or does not link it.
func (e *PlaneError) cure() string {
	switch {
	case !e.Weft:
		return "set the engine parameter DataTransport to WAN in the writer"
	case slices.Contains(e.Ours, PlaneEvpath):
		return fmt.Sprintf("leave the engine parameter DataTransport out in the writer, or set it to %q in this reader", e.Writer)
	}
	return fmt.Sprintf("leave the engine parameter DataTransport out in this reader, and ManualProgress, or set it to %q in the writer, which needs the import of prov/shm", strings.Join(e.Ours, ","))
}

// Unwrap makes the error an ErrPlane.
func (e *PlaneError) Unwrap() error { return ErrPlane }
